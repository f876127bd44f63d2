package gateway

// MaxConnections is the limit of open TCP connections.
const MaxConnections = maxConnections
