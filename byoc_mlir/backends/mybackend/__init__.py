"""Convolution, batch norm and ReLU as one: the teaching example of patterns and packed weights."""
