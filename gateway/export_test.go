package gateway

// Statuses is the table from codes to HTTP statuses.
var Statuses = statuses

// MaxSocketPath is how many bytes the path of a socket may have.
const MaxSocketPath = maxSocketPath

// MaxConnections is how many connections over TCP are open at most.
const MaxConnections = maxConnections
