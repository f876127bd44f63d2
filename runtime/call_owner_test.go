package runtime_test

import (
	"context"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// The agents of a caller's tasks and the caller have one owner, and share its places. Each
// task of the operator has its own.
func TestCall_OwnerIsCallerOfTask(t *testing.T) {
	var mu sync.Mutex
	var owners []string
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(ctx context.Context, _ obj) (any, error) {
		c, _ := tool.CurrentCall(ctx)
		mu.Lock()
		defer mu.Unlock()
		owners = append(owners, c.Owner)
		return "looked", nil
	})
	fx := fixtureConfig{tools: []tool.Tool{look}, model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		if answerCount(r) == 0 {
			return callTools("look", obj{}), nil
		}
		return endWith("done"), nil
	})}.open(t)
	ann := fx.createCaller(t, "probe")
	bob := identity.ByCaller("bob", ann.Role)
	fx.invoke(t, ann, "look", obj{})
	for _, caller := range []identity.Principal{ann, ann, bob, operator, operator} {
		fx.run(t, org.TaskSpec{Text: "t", Caller: caller, Role: string(ann.Role)})
	}
	if len(owners) != 6 {
		t.Fatalf("%d calls ran, want 6", len(owners))
	}
	if owners[0] == "" || owners[1] != owners[0] || owners[2] != owners[0] {
		t.Errorf("ann and her tasks have the owners %q, want the same", owners[:3])
	}
	distinct := map[string]bool{}
	for _, owner := range owners[2:] {
		distinct[owner] = true
	}
	if len(distinct) != 4 {
		t.Errorf("ann, bob and two tasks of the operator have the owners %q, want four", owners[2:])
	}
}
