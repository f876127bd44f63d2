package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// An answer with too many calls runs as many as are allowed. The model reads that the
// others were dropped. The same holds when the process crashes in between.
func TestLimits_CallsOfOneAnswer(t *testing.T) {
	ran := 0
	count := newTool(t, "count", tool.Options{}, func(context.Context, obj) (any, error) { ran++; return ran, nil })
	var read []string
	m := withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			calls := callTools("count", obj{})
			for range 49 {
				calls.Calls = append(calls.Calls, calls.Calls[0])
			}
			return calls
		}
		for _, item := range r.Items {
			if item.Result != nil {
				read = append(read, string(item.Result.Content))
			}
		}
		return endWith("done")
	}))
	fx := fixtureConfig{model: m, tools: []tool.Tool{count}}.open(t)
	if err := fx.ApplyConfig(runtime.OrgConfig{Limits: runtime.Limits{Calls: 3}}); err != nil {
		t.Fatal(err)
	}
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet("probe")})
	if err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.run(t, org.TaskSpec{Role: string(role.ID)}), `"done"`, "")
	if ran != 3 || len(read) != 4 || !strings.Contains(read[3], string(errcode.LimitExceeded)) || !strings.Contains(read[3], "50 calls") {
		t.Errorf("%d calls ran, the model read %q; want 3 and a fourth result that names the limit", ran, read)
	}
	if denied := bodiesOf[journal.ToolError](t, fx); len(denied) != 1 || denied[0].Code != errcode.LimitExceeded {
		t.Errorf("recorded denials are %+v", denied)
	}
}

// The limits of a configuration hold from the moment it is active.
func TestLimits_ChangeWithConfiguration(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	defer close(free)
	root := identity.ByAgent(fx.topAgent(t, fx.start(t, org.TaskSpec{})))
	for _, limit := range []int{1, 2, 1} {
		if err := fx.ApplyConfig(runtime.OrgConfig{Limits: runtime.Limits{TaskLimits: org.TaskLimits{Roles: limit}}}); err != nil {
			t.Fatal(err)
		}
		var err error
		for len(fx.Org().ListRoles()) < limit && err == nil {
			_, err = fx.CreateRole(t.Context(), newCall(root), org.RoleSpec{Name: fmt.Sprint("r", len(fx.Org().ListRoles())), Use: groupSet("artifact")})
		}
		_, err = fx.CreateRole(t.Context(), newCall(root), org.RoleSpec{Name: "one more", Use: groupSet("artifact")})
		if n := len(fx.Org().ListRoles()); errcode.CodeOf(err) != errcode.LimitExceeded || n < limit || n > 2 {
			t.Errorf("with a limit of %d there are %d roles: %v", limit, n, err)
		}
	}
}
