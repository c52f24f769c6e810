"""What Pommel can be seen to do: each experiment returns its numbers; `pommel.plot` draws them."""
