package builtin

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
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
	tools, err := artifactTools(shelf{}, folder{dir: t.TempDir()}, everything)
	return newKit(t, tools, err)
}

// rights lets all tools be called, or those of a list, and caps artifacts.
type rights struct {
	only  []string // nil is all
	limit int64
}

var everything = rights{limit: maxContent}

func (b rights) CanCall(by identity.Principal, tool string) bool {
	return by == identity.ByAgent(ann) && (b.only == nil || slices.Contains(b.only, tool))
}

func (b rights) ArtifactLimit() int64 { return b.limit }

func TestWhatIsPutIsGot(t *testing.T) {
	for _, c := range []struct{ name, put, want string }{
		{"an object", `{"type":"t","content":{"a":[1,2.50]}}`, `{"artifactRef":"artifact:call-1","type":"t","content":{"a":[1,2.50]}}`},
		{"a string", `{"type":"t","content":"text"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"text"}`},
		{"null", `{"type":"t","content":null}`, `{"artifactRef":"artifact:call-1","type":"t","content":null}`},
		{"meta", `{"type":"t","content":1,"meta":{"k":"v"}}`, `{"artifactRef":"artifact:call-1","type":"t","content":1,"meta":{"k":"v"}}`},
		{"bytes", `{"type":"t","content":"AAH/","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"AAH/","encoding":"base64","mediaType":"application/octet-stream"}`},
		{"no bytes", `{"type":"t","content":"","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"","encoding":"base64","mediaType":"text/plain; charset=utf-8"}`},
		{"an image", `{"type":"t","content":"iVBORw0KGgo=","encoding":"base64"}`, `{"artifactRef":"artifact:call-1","type":"t","content":"iVBORw0KGgo=","encoding":"base64","mediaType":"image/png"}`},
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

func TestPutArtifactRefusesWhatItCannotKeep(t *testing.T) {
	for _, args := range []string{
		`{"type":"t"}`,
		`{"type":"t","content":1,"path":"f"}`,
		`{"type":"t","path":"f","encoding":"base64"}`,
		`{"type":"t","content":null,"encoding":"base64"}`,
		`{"type":"t","content":"!!","encoding":"base64"}`,
		`{"type":"t","content":"AAE","encoding":"base64"}`,
		`{"type":"t","content":1,"encoding":"base64"}`,
	} {
		if got := artifactKit(t).code(t, "put_artifact", raw(args)); got != errcode.InvalidArguments {
			t.Errorf("%s: code %q, want invalid_arguments", args, got)
		}
	}
}

// closedShelf fails without a code, as a disk does.
type closedShelf struct{ Artifacts }

func (closedShelf) PutArtifact(context.Context, tool.Call, Artifact) (string, error) {
	return "", errors.New("disk on fire")
}

func TestAStoresFaultIsNotShownToTheModel(t *testing.T) {
	tools, err := artifactTools(closedShelf{}, nil, nil)
	k := newKit(t, tools, err)
	result, err := k["put_artifact"].Call(t.Context(), tool.Call{Args: raw(`{"type":"t","content":1}`)})
	if err == nil && !strings.Contains(string(result.JSON()), `"error":"internal"`) {
		t.Errorf("answered %s", result.JSON())
	}
	if strings.Contains(string(result.JSON()), "on fire") {
		t.Errorf("the model reads the cause: %s", result.JSON())
	}
}

// library gives artifacts by reference.
type library map[string]Artifact

func (l library) PutArtifact(context.Context, tool.Call, Artifact) (string, error) {
	return "", errors.New("nothing is taken")
}

func (l library) GetArtifact(_ context.Context, _ tool.Call, ref string) (*Artifact, error) {
	if a, ok := l[ref]; ok {
		return &a, nil
	}
	return nil, nil
}

func TestAPartOfAnArtifactIsGiven(t *testing.T) {
	tools, err := artifactTools(library{
		"text":   {Type: "t", Value: quote([]byte("naïve €uro"))},
		"object": {Type: "t", Value: raw(`{"ä":[1, 2]}`)},
		"bytes":  {Type: "t", Data: []byte("\x00\xff\x01"), Meta: raw(`{"k":1}`)},
	}, nil, everything)
	k := newKit(t, tools, err)
	for _, c := range []struct{ name, args, want string }{
		{"a text from an offset", `{"ref":"text","offset":7,"length":3}`, `{"artifactRef":"text","type":"t","content":"€","offset":7,"length":3,"size":13}`},
		{"a text up to a whole character", `{"ref":"text","length":9}`, `{"artifactRef":"text","type":"t","content":"naïve ","offset":0,"length":7,"size":13}`},
		{"a text from inside a character, as base64", `{"ref":"text","offset":8}`, `{"artifactRef":"text","type":"t","content":"gqx1cm8=","encoding":"base64","offset":8,"length":5,"size":13}`},
		{"a text behind its end", `{"ref":"text","offset":9007199254740991}`, `{"artifactRef":"text","type":"t","content":"","offset":9007199254740991,"length":0,"size":13}`},
		{"the text of JSON", `{"ref":"object","offset":6,"length":4}`, `{"artifactRef":"object","type":"t","content":"[1, ","encoding":"json","offset":6,"length":4,"size":13}`},
		{"JSON from inside a character, as base64", `{"ref":"object","offset":3,"length":1}`, `{"artifactRef":"object","type":"t","content":"pA==","encoding":"base64","offset":3,"length":1,"size":13}`},
		{"bytes", `{"ref":"bytes","offset":1,"length":1}`, `{"artifactRef":"bytes","type":"t","content":"/w==","encoding":"base64","mediaType":"application/octet-stream","offset":1,"length":1,"size":3,"meta":{"k":1}}`},
		{"of what is absent, null", `{"ref":"nope","offset":1}`, `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, k.ask(t, "get_artifact", raw(c.args))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A model gets a bounded part of what is large, and all of it by reading on.
func TestALargeArtifactIsReadInParts(t *testing.T) {
	text := strings.Repeat("€uro<&>", 50_000)
	for name, a := range map[string]Artifact{
		"text": {Value: quote([]byte(text))}, "JSON": {Value: raw(`[` + string(quote([]byte(text))) + `]`)}, "bytes": {Data: []byte(text)},
	} {
		t.Run(name, func(t *testing.T) {
			tools, err := artifactTools(library{"a": a}, nil, everything)
			k := newKit(t, tools, err)
			want, _ := a.plain()
			var got []byte
			for len(got) < len(want) {
				args := obj{"ref": "a"}
				if len(got) > 0 {
					args["offset"] = len(got)
				}
				part := get[struct {
					Content, Encoding string
					Length, Size      int
				}](t, k, "get_artifact", args)
				data := []byte(part.Content)
				if part.Encoding == inBase64 {
					data, _ = base64.StdEncoding.DecodeString(part.Content)
				}
				if len(data) != part.Length || part.Length == 0 || part.Length > wholeLength || part.Size != len(want) {
					t.Fatalf("%d bytes, length %d of %d", len(data), part.Length, part.Size)
				}
				got = append(got, data...)
			}
			if !bytes.Equal(got, want) {
				t.Error("the parts are not the whole")
			}
		})
	}
	t.Run("up to the last byte that is given whole", func(t *testing.T) {
		for n, whole := range map[int]bool{wholeLength: true, wholeLength + 1: false} {
			tools, err := artifactTools(library{"a": {Value: quote(bytes.Repeat([]byte("x"), n))}}, nil, everything)
			if got := newKit(t, tools, err).ask(t, "get_artifact", obj{"ref": "a"}); strings.Contains(got, `"size"`) == whole {
				t.Errorf("%d bytes: whole is %v", n, !whole)
			}
		}
	})
}

func TestAFileBecomesAnArtifactAndAnArtifactAFile(t *testing.T) {
	for name, content := range map[string]string{
		"text": "naïve <b>\n", "nothing": "", "bytes": "\x00\xff", "a NUL, which a text has not": "a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := t.TempDir(), shelf{}
			put(t, filepath.Join(dir, "in", "f"), content)
			tools, err := artifactTools(s, folder{dir: dir}, everything)
			k := newKit(t, tools, err)
			k.ask(t, "put_artifact", obj{"type": "t", "path": "in/./f"})
			if a := s["artifact:call-1"]; (a.Value != nil) != (utf8.ValidString(content) && !strings.Contains(content, "\x00")) {
				t.Errorf("kept as %+v", a)
			}
			tools, err = workspaceTools(folder{dir: dir}, s, everything)
			k = newKit(t, tools, err)
			answer := k.ask(t, "write_file", obj{"path": "out/g", "artifactRef": "artifact:call-1"})
			if want := fmt.Sprintf(`{"ok":true,"path":"out/g","size":%d}`, len(content)); answer != want {
				t.Errorf("answered %s, want %s", answer, want)
			}
			if got := tree(t, dir, "")["out/g"]; got != content {
				t.Errorf("the file has %q, want %q", got, content)
			}
		})
	}
}

// What a role may do does not grow by asking another tool for it.
func TestAnotherToolsReachNeedsThatTool(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "SECRET")
	for _, c := range []struct {
		name, tool string
		args       obj
		only       []string
		want       errcode.Code
	}{
		{"a file as artifact without read_file", "put_artifact", obj{"type": "t", "path": "f"}, []string{"put_artifact", "get_artifact"}, errcode.ToolNotAvailable},
		{"a file as artifact with it", "put_artifact", obj{"type": "t", "path": "f"}, []string{"read_file"}, ""},
		{"an artifact as file without get_artifact", "write_file", obj{"path": "g", "artifactRef": "a"}, []string{"write_file", "read_file"}, errcode.ToolNotAvailable},
		{"an artifact as file with it", "write_file", obj{"path": "g", "artifactRef": "a"}, []string{"get_artifact"}, ""},
		{"an artifact of another task", "write_file", obj{"path": "g", "artifactRef": "b"}, []string{"get_artifact"}, errcode.ArtifactNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shelf{"a": {Value: raw(`"text"`)}}
			b := rights{only: append([]string{}, c.only...), limit: maxContent}
			tools, err := artifactTools(s, folder{dir: dir}, b)
			k := newKit(t, tools, err)
			tools, err = workspaceTools(folder{dir: dir}, s, b)
			for name, tl := range newKit(t, tools, err) {
				k[name] = tl
			}
			if got := k.code(t, c.tool, c.args); got != c.want {
				t.Errorf("code %q, want %q", got, c.want)
			}
			if a, ok := s["artifact:call-1"]; ok != (c.want == "" && c.tool == "put_artifact") {
				t.Errorf("kept %+v", a)
			}
		})
	}
}

func TestAFileThatIsTooLargeIsNoArtifact(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "fits"), strings.Repeat("\xff", 100))
	put(t, filepath.Join(dir, "over"), strings.Repeat("\xff", 101))
	tools, err := artifactTools(shelf{}, folder{dir: dir}, rights{limit: 100})
	k := newKit(t, tools, err)
	for path, want := range map[string]errcode.Code{
		"fits": "", "over": errcode.InvalidArguments, "nope": errcode.FileNotFound, "../f": errcode.PathTraversal, ".": errcode.InvalidArguments,
	} {
		if got := k.code(t, "put_artifact", obj{"type": "t", "path": path}); got != want {
			t.Errorf("%s: code %q, want %q", path, got, want)
		}
	}
}
