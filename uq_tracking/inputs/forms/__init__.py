"""The forms of a predictive distribution other than mean and standard deviation, each scored as it is.

A form turns arrays into columns of one value per sample: mean, std, the interval over which the truth's probability
integral transform is spread, and every proper score that the form determines.
"""
