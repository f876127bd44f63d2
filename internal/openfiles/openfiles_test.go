package openfiles_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/openfiles"
)

func TestLimits_LeaveFilesForOthers(t *testing.T) {
	limit := openfiles.Limit()
	if limit < 64 {
		t.Fatalf("the limit of open files is %d", limit)
	}
	if in, out := openfiles.MaxIncoming(), openfiles.MaxOutgoing(); in < 1 || out < 2 || in+4*out > limit*3/4 {
		t.Errorf("%d incoming and %d outgoing connections of %d files", in, out, limit)
	}
}
