// What page.js uses of Observable Plot.
export { plot, line, areaY, ruleX, ruleY, dot, text, link, pointer, pointerX, pointerY, initializer } from "@observablehq/plot";
