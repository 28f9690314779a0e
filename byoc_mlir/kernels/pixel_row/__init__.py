"""1x1 convolutions of one row of pixels."""
