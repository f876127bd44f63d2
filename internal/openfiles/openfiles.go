// Package openfiles divides the files that this process may open among its connections. So
// one kind of connection leaves files for the others, the store and the sandbox.
//
// It counts nothing. It returns limits for packages that open connections.
package openfiles

// MaxIncoming returns how many connections the listeners may have open.
func MaxIncoming() int { return max(1, Limit()/2) }

// MaxOutgoing returns how many connections one kind of client may have open, such as all
// http_request calls together. A dialled connection may take two files for a moment.
func MaxOutgoing() int { return max(2, Limit()/16) }
