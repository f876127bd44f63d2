package wire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

func TestStatuses_CoverAllCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../errcode/errcode.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := wire.Statuses[errcode.Code(value)]; !ok {
			t.Errorf("%s has no status", value)
		}
		found++
		return true
	})
	if found < 50 {
		t.Errorf("found only %d codes in errcode.go", found)
	}
}

func TestWriteError_DropsDetailsThatCannotBeEncoded(t *testing.T) {
	w := httptest.NewRecorder()
	wire.WriteError(w, errcode.New(errcode.Conflict, "in use").With("by", func() {}))
	if got, want := w.Body.String(), `{"error":{"code":"conflict","message":"in use"}}`+"\n"; w.Code != http.StatusConflict || got != want {
		t.Errorf("got %d %s, want 409 %s", w.Code, got, want)
	}
}

func TestValidToken(t *testing.T) {
	for token, want := range map[string]bool{
		"rc_x": true, "a==": true, "-._~+/": true, strings.Repeat("a", 16<<10): true,
		"": false, "==": false, "a b": false, "a=b": false, "é": false, strings.Repeat("a", 16<<10+1): false,
	} {
		if got := wire.ValidToken(token); got != want {
			t.Errorf("%.20q: %v, want %v", token, got, want)
		}
	}
}
