"""What a regression has reached of the Verilog, what need not be reached, and how far each block is signed off."""
