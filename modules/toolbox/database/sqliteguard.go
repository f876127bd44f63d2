package database

import (
	"strings"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteFunction implements a scalar function. argv is the address of argc addresses of values.
type sqliteFunction func(tls *libc.TLS, ctx uintptr, argc int32, argv uintptr)

// maxArgumentBytes limits the arguments of one call of a function together. Every function
// whose cost grows with their length handles so much in less than a second.
const maxArgumentBytes = 64 << 20

// maxArgumentProduct limits the product of the lengths of two arguments that a function
// compares everywhere with each other.
const maxArgumentProduct = 256 << 20

// maxPathBytes limits the length of a JSON text times the paths that are looked up in it.
const maxPathBytes = 64 << 20

// builtinFunctions is SQLite's table of built-in functions. A function that an application
// registers under the same name would not be complete. SQLite knows more about its own
// functions, for example subtypes and the use of an index.
//
//go:linkname builtinFunctions modernc.org/sqlite/lib._sqlite3BuiltinFunctions
var builtinFunctions sqlite3.TFuncDefHash

// guardedFunctions keeps the functions whose addresses the table holds.
var guardedFunctions []sqliteFunction

// guardFunctions makes every built-in scalar function of SQLite check two conditions first.
// Its statement must not be interrupted, and its arguments must not be too long for it.
// SQLite looks for an interrupt only where a statement loops. It must be called once, before
// the first connection is opened.
func guardFunctions(tls *libc.TLS) {
	sqlite3.Xsqlite3_initialize(tls)
	for _, bucket := range builtinFunctions.Fa {
		for ; bucket != 0; bucket = definition(bucket).Fu.FpHash {
			for at := bucket; at != 0; at = definition(at).FpNext {
				guardFunction(definition(at))
			}
		}
	}
}

func definition(address uintptr) *sqlite3.TFuncDef {
	return *(**sqlite3.TFuncDef)(unsafe.Pointer(&address))
}

// guardFunction wraps a scalar function. An aggregate runs in a loop, which is interrupted.
func guardFunction(f *sqlite3.TFuncDef) {
	if f.FxSFunc == 0 || f.FxFinalize != 0 {
		return
	}
	run := *(*sqliteFunction)(unsafe.Pointer(&f.FxSFunc))
	limit := argumentLimits[libc.GoString(f.FzName)]
	guarded := sqliteFunction(func(tls *libc.TLS, ctx uintptr, argc int32, argv uintptr) {
		switch {
		case sqlite3.Xsqlite3_is_interrupted(tls, sqlite3.Xsqlite3_context_db_handle(tls, ctx)) != 0:
			sqlite3.Xsqlite3_result_error_code(tls, ctx, sqlite3.SQLITE_INTERRUPT)
		case measureArguments(tls, argc, argv).exceeds(limit):
			sqlite3.Xsqlite3_result_error_toobig(tls, ctx)
		default:
			run(tls, ctx, argc, argv)
		}
	})
	guardedFunctions = append(guardedFunctions, guarded)
	f.FxSFunc = *(*uintptr)(unsafe.Pointer(&guarded))
}

// argumentLimit reports whether a function accepts arguments of these sizes.
type argumentLimit func(argumentSizes) bool

// argumentSizes are the bytes of a call's arguments that are texts or blobs.
type argumentSizes struct{ count, first, second, all int64 }

func measureArguments(tls *libc.TLS, argc int32, argv uintptr) argumentSizes {
	sizes := argumentSizes{count: int64(argc)}
	for i := range uintptr(argc) {
		value := word(argv + i*unsafe.Sizeof(argv))
		switch sqlite3.Xsqlite3_value_type(tls, value) {
		case sqlite3.SQLITE_TEXT, sqlite3.SQLITE_BLOB: // asking a number for its bytes would convert it
		default:
			continue
		}
		n := int64(sqlite3.Xsqlite3_value_bytes(tls, value))
		sizes.all += n
		switch i {
		case 0:
			sizes.first = n
		case 1:
			sizes.second = n
		}
	}
	return sizes
}

// exceeds reports whether a function with this limit, which may be nil, would take too long.
func (s argumentSizes) exceeds(limit argumentLimit) bool {
	return s.all > maxArgumentBytes || limit != nil && !limit(s)
}

// comparesAll is the limit of functions that compare two arguments everywhere with each other.
func comparesAll(s argumentSizes) bool { return s.first*s.second <= maxArgumentProduct }

// looksUpPaths is the limit of functions that look up each further argument in a JSON text.
func looksUpPaths(s argumentSizes) bool { return s.first*(s.count-1) <= maxPathBytes }

// argumentLimits holds the functions whose cost is more than the length of their arguments.
var argumentLimits = map[string]argumentLimit{
	"instr": comparesAll, "replace": comparesAll, "like": comparesAll, "glob": comparesAll,
	"trim": comparesAll, "ltrim": comparesAll, "rtrim": comparesAll, "unhex": comparesAll, "json_patch": comparesAll, "jsonb_patch": comparesAll,
	"json_extract": looksUpPaths, "jsonb_extract": looksUpPaths, "json_remove": looksUpPaths, "jsonb_remove": looksUpPaths,
	"json_set": looksUpPaths, "jsonb_set": looksUpPaths, "json_insert": looksUpPaths, "jsonb_insert": looksUpPaths,
	"json_replace": looksUpPaths, "jsonb_replace": looksUpPaths, "json_array_insert": looksUpPaths, "jsonb_array_insert": looksUpPaths,
}

// slowFunctions belong to virtual tables, which have their own table of functions. Their cost
// is the square of a text's or a polygon's length.
var slowFunctions = map[string]bool{"highlight": true, "snippet": true, "geopoly_overlap": true, "geopoly_within": true}

// denySlowFunctions rejects statements with slowFunctions until end is called.
func (c *sqliteConn) denySlowFunctions() (end func()) {
	sqlite3.Xsqlite3_set_authorizer(c.tls, c.db, *(*uintptr)(unsafe.Pointer(&authorizeFunction)), 0)
	return func() { sqlite3.Xsqlite3_set_authorizer(c.tls, c.db, 0, 0) }
}

// authorizeFunction is an authorizer of SQLite, with its arguments.
var authorizeFunction = func(_ *libc.TLS, _ uintptr, action int32, _, name, _, _ uintptr) int32 {
	if action == sqlite3.SQLITE_FUNCTION && slowFunctions[strings.ToLower(libc.GoString(name))] {
		return sqlite3.SQLITE_DENY
	}
	return sqlite3.SQLITE_OK
}
