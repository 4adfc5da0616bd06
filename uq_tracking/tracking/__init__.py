"""From a report to a tracker: the verb, the contract of backends, and the built-in directory."""
