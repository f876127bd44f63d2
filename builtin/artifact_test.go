package builtin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// shelf keeps artifacts by the id of the call that put them.
type shelf map[string]Artifact

func (s shelf) PutArtifact(_ context.Context, c tool.Call, a Artifact) (string, error) {
	ref := "artifact:" + string(c.ID)
	s[ref] = a
	return ref, nil
}

func (s shelf) GetArtifact(_ context.Context, _ tool.Call, ref string) (*Artifact, error) {
	if a, ok := s[ref]; ok {
		return &a, nil
	}
	return nil, nil
}

func artifactKit(t testing.TB) kit {
	tools, err := artifactTools(shelf{})
	return newKit(t, tools, err)
}

func TestWhatIsPutIsGot(t *testing.T) {
	for _, c := range []struct{ name, put, want string }{
		{"an object", `{"type":"t","content":{"a":[1,2.50]}}`, `{"artifactRef":"artifact:call-1","type":"t","content":{"a":[1,2.50]}}`},
		{"a string", `{"type":"t","content":"text"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"text"}`},
		{"null", `{"type":"t","content":null}`, `{"artifactRef":"artifact:call-1","type":"t","content":null}`},
		{"meta", `{"type":"t","content":1,"meta":{"k":"v"}}`, `{"artifactRef":"artifact:call-1","type":"t","content":1,"meta":{"k":"v"}}`},
		{"bytes", `{"type":"t","content":"AAH/","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"AAH/","encoding":"base64"}`},
		{"no bytes", `{"type":"t","content":"","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"","encoding":"base64"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := artifactKit(t)
			if got, want := k.ask(t, "put_artifact", raw(c.put)), `{"artifactRef":"artifact:call-1"}`; got != want {
				t.Fatalf("put answered %s, want %s", got, want)
			}
			got := k.ask(t, "get_artifact", obj{"ref": "artifact:call-1"})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("get (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAbsentArtifactIsNull(t *testing.T) {
	if got := artifactKit(t).ask(t, "get_artifact", obj{"ref": "artifact:nope"}); got != "null" {
		t.Errorf("got %s, want null", got)
	}
}

func TestPutArtifactRefusesWhatIsNotBase64(t *testing.T) {
	for _, args := range []string{
		`{"type":"t","content":"!!","encoding":"base64"}`,
		`{"type":"t","content":"AAE","encoding":"base64"}`,
		`{"type":"t","content":1,"encoding":"base64"}`,
	} {
		if got := artifactKit(t).code(t, "put_artifact", raw(args)); got != errcode.InvalidArguments {
			t.Errorf("%s: code %q, want invalid_arguments", args, got)
		}
	}
}

func TestArtifactsAreCapped(t *testing.T) {
	full := make([]byte, maxContent)
	for _, c := range []struct {
		name string
		in   putArtifact
		want errcode.Code
	}{
		{"JSON up to the cap", putArtifact{Content: full}, ""},
		{"JSON over the cap", putArtifact{Content: append(full, 0)}, errcode.InvalidArguments},
		{"bytes up to the cap", putArtifact{Content: quoted64(full), Encoding: inBase64}, ""},
		{"bytes over the cap", putArtifact{Content: quoted64(append(full, 0)), Encoding: inBase64}, errcode.InvalidArguments},
		{"meta that makes it too much", putArtifact{Content: full, Meta: raw("{}")}, errcode.InvalidArguments},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.in.artifact(); errcode.Of(err) != c.want {
				t.Errorf("error %v, want code %q", err, c.want)
			}
		})
	}
}

func quoted64(data []byte) json.RawMessage {
	return raw(`"` + base64.StdEncoding.EncodeToString(data) + `"`)
}

// closedShelf fails without a code, as a disk does.
type closedShelf struct{ Artifacts }

func (closedShelf) PutArtifact(context.Context, tool.Call, Artifact) (string, error) {
	return "", errors.New("disk on fire")
}

func TestAStoresFaultIsNotShownToTheModel(t *testing.T) {
	tools, err := artifactTools(closedShelf{})
	k := newKit(t, tools, err)
	result, err := k["put_artifact"].Call(t.Context(), tool.Call{Args: raw(`{"type":"t","content":1}`)})
	if err == nil && !strings.Contains(string(result.JSON()), `"error":"internal"`) {
		t.Errorf("answered %s", result.JSON())
	}
	if strings.Contains(string(result.JSON()), "on fire") {
		t.Errorf("the model reads the cause: %s", result.JSON())
	}
}
