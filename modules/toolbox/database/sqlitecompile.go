package database

import (
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxOperationBytes limits the bytes that all operations of a statement may read before the
// next check for an interrupt. The slowest converts a text to a number, in 3 ns for each byte.
const maxOperationBytes = 256 << 20

// Limits that keep the time to compile a statement short. That of the text holds for
// statements that a caller wrote.
const (
	maxStatementText       = 2 << 20
	maxStatementOperations = 250_000
)

// compile returns the end of the first statement of a text, and how many operations it has
// whose cost grows with the length of values. If the statement does not compile, it ends with
// the text, and running it returns the error.
func (c *sqliteConn) compile(text string) (end, operations int) {
	source, err := libc.CString(text)
	if err != nil {
		return len(text), maxStatementOperations
	}
	defer libc.Xfree(c.tls, source)
	const size = int(2 * unsafe.Sizeof(source))
	out := c.tls.Alloc(size) // the addresses of the statement and of the text after it
	defer c.tls.Free(size)
	tail := out + unsafe.Sizeof(out)
	if sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, source, -1, out, tail) != sqlite3.SQLITE_OK {
		return len(text), maxStatementOperations
	}
	statement := word(out)
	defer sqlite3.Xsqlite3_finalize(c.tls, statement)
	end = int(word(tail) - source)
	if end == 0 { // a NUL ends what SQLite reads
		end = len(text)
	}
	return end, c.operations(statement)
}

// word returns the address that is stored at an address.
func word(at uintptr) uintptr { return **(**uintptr)(unsafe.Pointer(&at)) }

// operations counts the operations of a compiled statement and of its triggers.
func (c *sqliteConn) operations(statement uintptr) (n int) {
	if statement == 0 || sqlite3.Xsqlite3_stmt_explain(c.tls, statement, 1) != sqlite3.SQLITE_OK {
		return n
	}
	for sqlite3.Xsqlite3_step(c.tls, statement) == sqlite3.SQLITE_ROW {
		switch name := libc.GoString(sqlite3.Xsqlite3_column_text(c.tls, statement, 1)); {
		case name == "VFilter", name == "VUpdate":
			n += virtualOperations
		case !constantOperations[name]:
			n++
		}
	}
	return n
}

// virtualOperations is how many operations a search or a change of a virtual table counts for.
// A phrase of FTS5 is compared at every position of a text.
const virtualOperations = 64

// constantOperations are those whose cost does not depend on the length of values. A function
// checks for an interrupt itself.
var constantOperations = map[string]bool{
	"Close": true, "Explain": true, "Function": true, "Gosub": true, "Goto": true, "Halt": true, "Init": true,
	"Integer": true, "Int64": true, "IsNull": true, "Next": true, "Noop": true, "NotNull": true, "Null": true, "Once": true,
	"OpenEphemeral": true, "OpenRead": true, "OpenWrite": true, "PureFunc": true, "Real": true, "ResultRow": true, "Return": true,
	"Rewind": true, "Rowid": true, "SCopy": true, "String8": true, "Transaction": true, "Yield": true,
}
