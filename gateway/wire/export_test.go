package wire

// Statuses maps error codes to HTTP statuses.
var Statuses = statuses
