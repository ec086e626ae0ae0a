"""What others do and this project compares with: Gist, cDMA+, vDNN."""
