package program

var _ int = missing
