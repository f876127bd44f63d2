package scripts_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// The function of docs/tool-services.md that checks a call token in Python accepts what
// protocol.VerifyToken accepts, and rejects what it rejects.
func TestDocument_ChecksCallTokenInPython(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it starts Python; make check runs it")
	}
	document, err := os.ReadFile("../../../docs/tool-services.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "```python\n")
	function, _, _ := strings.Cut(rest, "```")
	request := protocol.Request{User: "ann", Config: `{"style":"pun"}`, Arguments: `{"topic":"ä"}`}
	other := request
	other.Arguments = "{}"
	sign := func(service string, expires time.Duration, keys ...string) string {
		return protocol.Token{Service: service, Expires: time.Now().UTC().Add(expires)}.SignRequest(request, keys...)
	}
	for _, c := range []struct {
		name, token string
		request     protocol.Request
		valid       bool
	}{
		{"valid", sign("joke", time.Hour, "key"), request, true},
		{"signed with a newer key, too", sign("joke", time.Hour, "new", "key"), request, true},
		{"of another key", sign("joke", time.Hour, "new"), request, false},
		{"of another service", sign("bank", time.Hour, "key"), request, false},
		{"of other arguments", sign("joke", time.Hour, "key"), other, false},
		{"expired", sign("joke", -time.Hour, "key"), request, false},
	} {
		_, err := protocol.VerifyToken(c.token, "joke", c.request, time.Now(), "key")
		if (err == nil) != c.valid {
			t.Errorf("%s: VerifyToken returns %v", c.name, err)
		}
		body, _ := json.Marshal(map[string]string{"user": c.request.User, "config": c.request.Config, "arguments": c.request.Arguments})
		cmd := exec.CommandContext(t.Context(), "python3", "-c", function+"\nimport sys\nprint(verify(sys.argv[1], 'key', 'joke', json.loads(sys.argv[2])))", c.token, string(body))
		out, err := cmd.CombinedOutput()
		if want := map[bool]string{true: "True\n", false: "False\n"}[c.valid]; err != nil || string(out) != want {
			t.Errorf("%s: %v, %s", c.name, err, out)
		}
	}
}
