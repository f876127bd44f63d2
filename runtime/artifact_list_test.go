package runtime_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/runtime"
)

// putListed stores artifacts of an owner that are in the list of a caller.
func putListed(t *testing.T, fx *fixture, list identity.Principal, owner, prefix string, n int) {
	t.Helper()
	b := &journal.Batch{}
	for i := range n {
		a := runtime.Artifact{ID: fmt.Sprint(prefix, i), Type: "t", Owner: owner, CreatedAt: time.Unix(int64(i), 0)}
		key := fmt.Sprintf("%s/%016x/%s", list.Key(), uint64(math.MaxInt64-a.CreatedAt.UnixNano()), a.ID)
		b.Put = append(b.Put, journal.Record{Kind: "artifact", Key: a.ID, Value: mustJSON(a)}, journal.Record{Kind: "artifactList", Key: key, Value: []byte("{}")})
	}
	if _, err := fx.store.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// A list has pages, the newest artifact first, and ends after 10,000 entries whatever the caller
// sends as its position.
func TestListArtifacts_Pages(t *testing.T) {
	fx := openFixture(t, "", nil)
	ann := fx.createCaller(t, "artifact")
	putListed(t, fx, ann, ann.Key(), "own-", 1100)
	var got []string
	after, pages := "", 0
	for {
		page, err := fx.ToolHost().ListArtifacts(t.Context(), newCall(ann), after)
		if err != nil || len(page.Artifacts) > 500 {
			t.Fatalf("%d artifacts, %v", len(page.Artifacts), err)
		}
		for _, a := range page.Artifacts {
			got = append(got, a.Ref)
		}
		if pages++; page.Next == "" || pages > 3 {
			break
		}
		after = page.Next
	}
	if pages != 3 || len(got) != 1100 || got[0] != "artifact:own-1099" || got[1099] != "artifact:own-0" {
		t.Errorf("%d pages with %d artifacts: %q … %q", pages, len(got), got[0], got[len(got)-1])
	}
	if page, err := fx.ToolHost().ListArtifacts(t.Context(), newCall(ann), "9999 !"); err != nil || len(page.Artifacts) != 1 || page.Next != "" {
		t.Errorf("after 9,999 entries: %d, %q, %v", len(page.Artifacts), page.Next, err)
	}
	for _, after := range []string{"x", "1", "-1 x", " x", "1 "} {
		if _, err := fx.ToolHost().ListArtifacts(t.Context(), newCall(ann), after); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("after %q: %v", after, err)
		}
	}
}

// An entry of a list gives no artifact of another owner away, and no cursor leads into the list of
// another caller.
func TestListArtifacts_RecordDecides(t *testing.T) {
	fx := openFixture(t, "", nil)
	ann := fx.createCaller(t, "artifact")
	bob := identity.ByCaller("bob", ann.Role)
	putListed(t, fx, ann, bob.Key(), "bobs-", 3)
	putListed(t, fx, bob, bob.Key(), "listed-", 3)
	for _, after := range []string{"", "0 /", "0 ../" + bob.Key() + "/", "0 \xff"} {
		if page, err := fx.ToolHost().ListArtifacts(t.Context(), newCall(ann), after); err != nil || len(page.Artifacts) > 0 || page.Next != "" {
			t.Errorf("after %q ann lists %+v, %v", after, page, err)
		}
	}
	if page, err := fx.ToolHost().ListArtifacts(t.Context(), newCall(bob), ""); err != nil || len(page.Artifacts) != 3 {
		t.Errorf("bob lists %+v, %v", page, err)
	}
	for _, by := range []identity.Principal{operator, identity.ByAgent("a"), {}} {
		if page, err := fx.ToolHost().ListArtifacts(t.Context(), newCall(by), ""); err != nil || len(page.Artifacts) > 0 {
			t.Errorf("%s lists %+v, %v", by, page, err)
		}
	}
}
