package program

var Limit = limit()
