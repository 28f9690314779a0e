"""What is gained: by a region, by other types in a convolution or a product."""
