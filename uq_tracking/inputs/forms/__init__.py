"""The forms of a predictive distribution besides mean and standard deviation, each scored as what it is.

A form turns arrays into columns of one value per sample: mean, std, the interval that the probability integral
transform of the truth is spread over, and every proper score that the form determines.
"""
