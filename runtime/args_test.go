package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// largeCalls lists the recorded calls whose arguments are referenced by hash.
func largeCalls(t *testing.T, fx *fixture, args json.RawMessage) (n int) {
	t.Helper()
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		if c.ArgsHash == hashOf(args) && c.ArgsSize == len(args) && c.Args == nil {
			n++
		}
	}
	return n
}

// Large arguments of an agent are in its answer only.
func TestAgent_LargeArgumentsAreRecordedOnce(t *testing.T) {
	large, small := artifactArgs(64<<10).(json.RawMessage), artifactArgs(60<<10).(json.RawMessage)
	fx := fixtureConfig{model: answerOnce(callTools("put_artifact", large, "put_artifact", small))}.open(t)
	fx.run(t, fx.workerTask(t, ""))
	if n := largeCalls(t, fx, large); n != 1 {
		t.Errorf("%d calls reference their arguments, want 1", n)
	}
	found := 0
	for _, e := range fx.events(t) {
		if !strings.Contains(string(mustJSON(e)), strings.Repeat("x", 64<<10)) {
			continue
		}
		found++
		if answer, ok := e.Body.(journal.ModelAnswered); !ok || string(answer.Answer.Calls[0].Args) != string(large) {
			t.Errorf("the arguments are in an event of type %s", e.Body.EventType())
		}
	}
	if found != 1 {
		t.Errorf("the arguments are in %d events, want 1", found)
	}
}

// Large arguments of a caller are stored once for each hash, and garbage collection
// keeps them.
func TestInvoke_LargeArgumentsAreStoredOnce(t *testing.T) {
	fx := fixtureConfig{model: answerFunc(func(model.Request) model.Answer { return waitForMessage() })}.open(t)
	ann := fx.createCaller(t, "artifact")
	args := artifactArgs(100 << 10).(json.RawMessage)
	for _, by := range []identity.Principal{ann, identity.ByCaller("bob", ann.Role), ann} {
		fx.invoke(t, by, "put_artifact", args)
	}
	if _, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if n := largeCalls(t, fx, args); n != 3 {
		t.Errorf("%d calls reference their arguments, want 3", n)
	}
	if n := len(fx.contents(t)); n != 2 {
		t.Errorf("%d contents are stored, want the arguments and the artifact", n)
	}
	if got, err := fx.ArtifactStore().ReadBlob(t.Context(), hashOf(args)); err != nil || string(got) != string(args) {
		t.Errorf("got %.20q, %v, want the arguments", got, err)
	}
}
