package gateway

// Statuses maps error codes to HTTP statuses.
var Statuses = statuses

// MaxSocketPath is the longest path of a socket, in bytes.
const MaxSocketPath = maxSocketPath

// MaxConnections is the limit of open TCP connections.
const MaxConnections = maxConnections
