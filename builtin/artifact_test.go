package builtin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// memoryArtifacts stores artifacts by the id of the call that put them.
type memoryArtifacts map[string]Artifact

func (s memoryArtifacts) PutArtifact(_ context.Context, c tool.Call, a Artifact) (string, error) {
	ref := "artifact:" + string(c.ID)
	s[ref] = a
	return ref, nil
}

func (s memoryArtifacts) GetArtifact(_ context.Context, _ tool.Call, ref string) (*Artifact, error) {
	if a, ok := s[ref]; ok {
		return &a, nil
	}
	return nil, nil
}

func (s memoryArtifacts) ListArtifacts(context.Context, tool.Call, string) (ArtifactPage, error) {
	return ArtifactPage{}, nil
}

func artifactFixture(t testing.TB) fixture {
	tools, err := artifactTools(memoryArtifacts{}, stubWorkspaces{dir: t.TempDir()}, allTools)
	return newFixture(t, tools, err)
}

// stubLimits allows all tools or those of a list, and limits artifacts.
type stubLimits struct {
	allowed []string // nil allows all
	denied  []string // arguments
	limit   int64
	result  int // ResultLimit
}

var allTools = stubLimits{limit: workspace.MaxContent}

func (b stubLimits) CheckCall(_ context.Context, by identity.Principal, tool string, args json.RawMessage) error {
	if by == identity.ByAgent(callerID) && (b.allowed == nil || slices.Contains(b.allowed, tool)) && !slices.Contains(b.denied, string(args)) {
		return nil
	}
	return errcode.New(errcode.ToolNotAvailable, "tool %s is not available", tool)
}

func (b stubLimits) ArtifactLimit() int64 { return b.limit }

func (b stubLimits) ResultLimit(identity.Principal) int { return b.result }

func TestArtifacts_GetReturnsWhatWasPut(t *testing.T) {
	for _, c := range []struct{ name, put, want string }{
		{"object", `{"type":"t","content":{"a":[1,2.50]}}`, `{"artifactRef":"artifact:call-1","type":"t","content":{"a":[1,2.50]}}`},
		{"string", `{"type":"t","content":"text"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"text"}`},
		{"null", `{"type":"t","content":null}`, `{"artifactRef":"artifact:call-1","type":"t","content":null}`},
		{"meta", `{"type":"t","content":1,"meta":{"k":"v"}}`, `{"artifactRef":"artifact:call-1","type":"t","content":1,"meta":{"k":"v"}}`},
		{"binary", `{"type":"t","content":"AAH/","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"AAH/","encoding":"base64","mediaType":"application/octet-stream"}`},
		{"empty binary", `{"type":"t","content":"","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"","encoding":"base64","mediaType":"text/plain; charset=utf-8"}`},
		{"image", `{"type":"t","content":"iVBORw0KGgo=","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"iVBORw0KGgo=","encoding":"base64","mediaType":"image/png"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := artifactFixture(t)
			if got, want := k.call(t, "put_artifact", rawJSON(c.put)), `{"artifactRef":"artifact:call-1"}`; got != want {
				t.Fatalf("put returned %s, want %s", got, want)
			}
			got := k.call(t, "get_artifact", obj{"ref": "artifact:call-1"})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("get (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGetArtifact_AbsentIsNull(t *testing.T) {
	got, err := artifactFixture(t)["get_artifact"].Call(t.Context(), tool.Call{ID: "c", Name: "get_artifact", Args: rawJSON(`{"ref":"artifact:nope"}`), By: identity.ByAgent(callerID)})
	if err != nil || string(got.JSON()) != "null" || !strings.Contains(got.Absent, `no artifact "artifact:nope"`) {
		t.Errorf("got %s, %q, %v", got.JSON(), got.Absent, err)
	}
}

func TestPutArtifact_RejectsInvalidArguments(t *testing.T) {
	for _, args := range []string{
		`{"type":"t"}`,
		`{"type":"t","content":1,"path":"f"}`,
		`{"type":"t","path":"f","encoding":"base64"}`,
		`{"type":"t","content":null,"encoding":"base64"}`,
		`{"type":"t","content":"!!","encoding":"base64"}`,
		`{"type":"t","content":"AAE","encoding":"base64"}`,
		`{"type":"t","content":1,"encoding":"base64"}`,
	} {
		if got := artifactFixture(t).callCode(t, "put_artifact", rawJSON(args)); got != errcode.InvalidArguments {
			t.Errorf("%s: code %q, want invalid_arguments", args, got)
		}
	}
}

// failingArtifacts fails with an error without a code.
type failingArtifacts struct{ ArtifactStore }

func (failingArtifacts) PutArtifact(context.Context, tool.Call, Artifact) (string, error) {
	return "", errors.New("disk on fire")
}

func TestPutArtifact_HidesStoreErrors(t *testing.T) {
	tools, err := artifactTools(failingArtifacts{}, nil, nil)
	k := newFixture(t, tools, err)
	result, err := k["put_artifact"].Call(t.Context(), tool.Call{Args: rawJSON(`{"type":"t","content":1}`)})
	if err == nil && !strings.Contains(string(result.JSON()), `"error":"internal"`) {
		t.Errorf("got %s", result.JSON())
	}
	if strings.Contains(string(result.JSON()), "on fire") {
		t.Errorf("the result contains the cause: %s", result.JSON())
	}
}

// readOnlyArtifacts returns artifacts by reference and stores none.
type readOnlyArtifacts map[string]Artifact

func (l readOnlyArtifacts) PutArtifact(context.Context, tool.Call, Artifact) (string, error) {
	return "", errors.New("read-only")
}

func (l readOnlyArtifacts) GetArtifact(_ context.Context, _ tool.Call, ref string) (*Artifact, error) {
	if a, ok := l[ref]; ok {
		return &a, nil
	}
	return nil, nil
}

func (readOnlyArtifacts) ListArtifacts(context.Context, tool.Call, string) (ArtifactPage, error) {
	return ArtifactPage{}, nil
}

// An agent lists no artifacts, and a list stands alone.
func TestGetArtifact_ListIsForCallers(t *testing.T) {
	k := artifactFixture(t)
	for _, args := range []string{`{}`, `{"list":{}}`, `{"ref":"artifact:x","list":{}}`, `{"list":{},"offset":0}`, `{"list":{"before":"x"}}`, `{"list":null}`} {
		if got := k.callCode(t, "get_artifact", rawJSON(args)); got != errcode.InvalidArguments {
			t.Errorf("%s: code %q, want invalid_arguments", args, got)
		}
	}
}

func TestGetArtifact_ReturnsPart(t *testing.T) {
	tools, err := artifactTools(readOnlyArtifacts{
		"text":   {Type: "t", Value: quote([]byte("naïve €uro"))},
		"object": {Type: "t", Value: rawJSON(`{"ä":[1, 2]}`)},
		"bytes":  {Type: "t", Data: []byte("\x00\xff\x01"), Meta: rawJSON(`{"k":1}`)},
	}, nil, allTools)
	k := newFixture(t, tools, err)
	for _, c := range []struct{ name, args, want string }{
		{"text from an offset", `{"ref":"text","offset":7,"length":3}`, `{"artifactRef":"text","type":"t","content":"€","offset":7,"length":3,"size":13,"truncated":true,"nextOffset":10}`},
		{"text up to a complete character", `{"ref":"text","length":9}`, `{"artifactRef":"text","type":"t","content":"naïve ","offset":0,"length":7,"size":13,"truncated":true,"nextOffset":7}`},
		{"text from inside a character is base64", `{"ref":"text","offset":8}`, `{"artifactRef":"text","type":"t","content":"gqx1cm8=","encoding":"base64","offset":8,"length":5,"size":13,"truncated":false}`},
		{"text after its end", `{"ref":"text","offset":9007199254740991}`, `{"artifactRef":"text","type":"t","content":"","offset":9007199254740991,"length":0,"size":13,"truncated":false}`},
		{"JSON as text", `{"ref":"object","offset":6,"length":4}`, `{"artifactRef":"object","type":"t","content":"[1, ","encoding":"json","offset":6,"length":4,"size":13,"truncated":true,"nextOffset":10}`},
		{"JSON from inside a character is base64", `{"ref":"object","offset":3,"length":1}`, `{"artifactRef":"object","type":"t","content":"pA==","encoding":"base64","offset":3,"length":1,"size":13,"truncated":true,"nextOffset":4}`},
		{"binary", `{"ref":"bytes","offset":1,"length":1}`, `{"artifactRef":"bytes","type":"t","content":"/w==","encoding":"base64","mediaType":"application/octet-stream","offset":1,"length":1,"size":3,"truncated":true,"nextOffset":2,"meta":{"k":1}}`},
		{"absent is null", `{"ref":"nope","offset":1}`, `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, k.call(t, "get_artifact", rawJSON(c.args))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Large content is returned in bounded parts that add up to the whole.
func TestGetArtifact_LargeContentInParts(t *testing.T) {
	text := strings.Repeat("€uro<&>", 50_000)
	for name, a := range map[string]Artifact{
		"text": {Value: quote([]byte(text))}, "JSON": {Value: rawJSON(`[` + string(quote([]byte(text))) + `]`)}, "bytes": {Data: []byte(text)},
	} {
		t.Run(name, func(t *testing.T) {
			tools, err := artifactTools(readOnlyArtifacts{"a": a}, nil, allTools)
			k := newFixture(t, tools, err)
			want, _ := a.fileContent()
			var got []byte
			for len(got) < len(want) {
				args := obj{"ref": "a"}
				if len(got) > 0 {
					args["offset"] = len(got)
				}
				part := callResult[struct {
					Content, Encoding string
					Length, Size      int
				}](t, k, "get_artifact", args)
				data := []byte(part.Content)
				if part.Encoding == inBase64 {
					data, _ = base64.StdEncoding.DecodeString(part.Content)
				}
				if len(data) != part.Length || part.Length == 0 || part.Length > maxWholeContent || part.Size != len(want) {
					t.Fatalf("%d bytes, length %d of %d", len(data), part.Length, part.Size)
				}
				got = append(got, data...)
			}
			if !bytes.Equal(got, want) {
				t.Error("the parts do not add up to the content")
			}
		})
	}
	t.Run("limit of whole content", func(t *testing.T) {
		for n, whole := range map[int]bool{maxWholeContent: true, maxWholeContent + 1: false} {
			tools, err := artifactTools(readOnlyArtifacts{"a": {Value: quote(bytes.Repeat([]byte("x"), n))}}, nil, allTools)
			if got := newFixture(t, tools, err).call(t, "get_artifact", obj{"ref": "a"}); strings.Contains(got, `"size"`) == whole {
				t.Errorf("%d bytes: whole is %v", n, !whole)
			}
		}
	})
}

// A result of get_artifact fits the reader's limit, whatever is stored and asked for.
func TestGetArtifact_FitsReader(t *testing.T) {
	const limit = 4_000
	for name, a := range map[string]Artifact{
		"text":  {Value: quote([]byte(strings.Repeat("<line>\n\"é\"\n", 900)))},
		"JSON":  {Value: rawJSON(`["` + strings.Repeat(`<a>\"`, 900) + `"]`)},
		"bytes": {Data: bytes.Repeat([]byte{0, 0xff}, 3_000)},
	} {
		for _, args := range []obj{{"ref": "a"}, {"ref": "a", "length": 1_000_000}, {"ref": "a", "offset": 10}} {
			tools, err := artifactTools(readOnlyArtifacts{"a": a}, nil, stubLimits{result: limit})
			got := newFixture(t, tools, err).call(t, "get_artifact", args)
			if len(got) > limit || len(got) < limit-rangeBytes || !gjson.Get(got, "truncated").Bool() || gjson.Get(got, "nextOffset").Int() == 0 {
				t.Errorf("%s, %v: %d bytes: %.100s … %s", name, args, len(got), got, got[max(0, len(got)-100):])
			}
		}
	}
	image := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 2*limit)...)
	tools, err := artifactTools(readOnlyArtifacts{"a": {Data: image}}, nil, stubLimits{result: limit})
	if got := newFixture(t, tools, err).call(t, "get_artifact", obj{"ref": "a"}); gjson.Get(got, "truncated").Exists() {
		t.Errorf("an image is cut: %.100s", got)
	}
}

func TestArtifacts_CopyFilesBothWays(t *testing.T) {
	for name, content := range map[string]string{
		"text": "naïve <b>\n", "empty": "", "binary": "\x00\xff", "text with NUL": "a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := t.TempDir(), memoryArtifacts{}
			putFile(t, filepath.Join(dir, "in", "f"), content)
			tools, err := artifactTools(s, stubWorkspaces{dir: dir}, allTools)
			k := newFixture(t, tools, err)
			k.call(t, "put_artifact", obj{"type": "t", "path": "in/./f"})
			if a := s["artifact:call-1"]; (a.Value != nil) != (utf8.ValidString(content) && !strings.Contains(content, "\x00")) {
				t.Errorf("stored %+v", a)
			}
			tools, err = workspaceTools(stubWorkspaces{dir: dir}, s, allTools)
			k = newFixture(t, tools, err)
			answer := k.call(t, "write_file", obj{"path": "out/g", "artifactRef": "artifact:call-1"})
			if want := fmt.Sprintf(`{"ok":true,"path":"out/g","size":%d}`, len(content)); answer != want {
				t.Errorf("got %s, want %s", answer, want)
			}
			if got := tree(t, dir, "")["out/g"]; got != content {
				t.Errorf("the file contains %q, want %q", got, content)
			}
		})
	}
}

// A tool that uses the data of another tool does not widen the permissions of a
// role.
func TestArtifacts_NeedTheOtherToolForItsData(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "f"), "SECRET")
	for _, c := range []struct {
		name, tool string
		args       obj
		only       []string
		denied     string
		want       errcode.Code
	}{
		{"file as artifact without read_file", "put_artifact", obj{"type": "t", "path": "f"}, []string{"put_artifact", "get_artifact"}, "", errcode.ToolNotAvailable},
		{"file as artifact with read_file", "put_artifact", obj{"type": "t", "path": "f"}, []string{"read_file"}, "", ""},
		{"file that read_file may not read", "put_artifact", obj{"type": "t", "path": "f"}, []string{"read_file"}, `{"path":"f"}`, errcode.ToolNotAvailable},
		{"artifact as file without get_artifact", "write_file", obj{"path": "g", "artifactRef": "a"}, []string{"write_file", "read_file"}, "", errcode.ToolNotAvailable},
		{"artifact as file with get_artifact", "write_file", obj{"path": "g", "artifactRef": "a"}, []string{"get_artifact"}, "", ""},
		{"artifact that get_artifact may not get", "write_file", obj{"path": "g", "artifactRef": "a"}, []string{"get_artifact"}, `{"ref":"a"}`, errcode.ToolNotAvailable},
		{"artifact of another task", "write_file", obj{"path": "g", "artifactRef": "b"}, []string{"get_artifact"}, "", errcode.ArtifactNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memoryArtifacts{"a": {Value: rawJSON(`"text"`)}}
			b := stubLimits{allowed: append([]string{}, c.only...), denied: []string{c.denied}, limit: workspace.MaxContent}
			tools, err := artifactTools(s, stubWorkspaces{dir: dir}, b)
			k := newFixture(t, tools, err)
			tools, err = workspaceTools(stubWorkspaces{dir: dir}, s, b)
			for name, tl := range newFixture(t, tools, err) {
				k[name] = tl
			}
			if got := k.callCode(t, c.tool, c.args); got != c.want {
				t.Errorf("code %q, want %q", got, c.want)
			}
			if a, ok := s["artifact:call-1"]; ok != (c.want == "" && c.tool == "put_artifact") {
				t.Errorf("stored %+v", a)
			}
		})
	}
}

func TestPutArtifact_RejectsLargeFile(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "fits"), strings.Repeat("\xff", 100))
	putFile(t, filepath.Join(dir, "over"), strings.Repeat("\xff", 101))
	tools, err := artifactTools(memoryArtifacts{}, stubWorkspaces{dir: dir}, stubLimits{limit: 100})
	k := newFixture(t, tools, err)
	for path, want := range map[string]errcode.Code{
		"fits": "", "over": errcode.InvalidArguments, "nope": errcode.FileNotFound, "../f": errcode.PathTraversal, ".": errcode.InvalidArguments,
	} {
		if got := k.callCode(t, "put_artifact", obj{"type": "t", "path": path}); got != want {
			t.Errorf("%s: code %q, want %q", path, got, want)
		}
	}
}
