package database

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxHeap is how many bytes all SQLite databases of the process may allocate together. A
// statement that needs more fails. The limits of values and rows hold for each column on its
// own. So without the limit, one statement could use up the memory of the machine.
const maxHeap = 512 << 20

var heapOnce sync.Once // SQLite has one heap for the process

// limitHeap limits the heap of SQLite. It must be called before the first connection is
// opened.
func limitHeap() {
	heapOnce.Do(func() {
		tls := libc.NewTLS()
		defer tls.Close()
		const arg = unsafe.Sizeof(uintptr(0))
		args := tls.Alloc(int(arg))
		defer tls.Free(int(arg))
		_ = sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MEMSTATUS, libc.VaList(args, int32(1))) // the limit needs the count; it fails only after initialization
		sqlite3.Xsqlite3_hard_heap_limit64(tls, maxHeap)
		guardFunctions(tls)
	})
}
