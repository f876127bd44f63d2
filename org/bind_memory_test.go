package org_test

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
)

// A thousand roles with ten different bounds each, all of them looked at, take at most 20 MiB.
func TestBind_MemoryOfManyRoles(t *testing.T) {
	const roles, limit = 1000, 20 << 20
	f := newBoundFixture(t)
	before := liveHeap()
	for i := range roles {
		role := f.banker(identity.ByOperator("op"), tenBounds(i))
		f.wantBound(identity.ByCaller("ann", role.ID), i)
	}
	used := liveHeap() - before
	t.Logf("%d roles with ten bounds take %d KiB", roles, used>>10)
	if used > limit {
		t.Errorf("%d roles take %d bytes, want at most %d", roles, used, limit)
	}
	goruntime.KeepAlive(f)
}

// tenBounds returns bounds on ten arguments of the tool pay. They differ for each i.
func tenBounds(i int) string {
	paths := []string{fmt.Sprintf(`"/amount": {"max": %d}`, i)}
	for n := range 9 {
		paths = append(paths, fmt.Sprintf(`"/to%d": {"any": [{"equal": "a%d@example.com"}, {"glob": "*@%d.example.com"}], "missing": "allow"}`, n, i, i))
	}
	return `{"pay": {` + strings.Join(paths, ", ") + `}}`
}

// wantBound checks that p may pay the amount limit and not more.
func (f *fixture) wantBound(p identity.Principal, limit int) {
	f.t.Helper()
	pay := func(amount int) bool { return f.within(p, "pay", fmt.Sprintf(`{"amount": %d}`, amount)) }
	if !pay(limit) || pay(limit+1) {
		f.t.Errorf("the bound %d does not hold for %v", limit, p)
	}
}

// liveHeap returns the bytes of reachable memory.
func liveHeap() uint64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
