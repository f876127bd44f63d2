package protocol_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// pieces are what random bodies are made of: JSON, almost JSON, and texts that need escapes.
var pieces = []string{
	`{`, `}`, `{`, `}`, `,`, `,`, `:`, `:`, `[`, `]`, ` `, "\n", "\t", `"user"`, `"config"`, `"arguments"`, `"error"`, `"response"`, `"end_of_stream"`, `"User"`, `"us\u0065r"`, `"other"`,
	`"ann"`, `"{\"style\":\"pun\"}"`, `"a\\b\/c\n\t\b\f\r"`, `"\u00e4\ud83d\ude00"`, `"\ud83d"`, `"ä€😀"`, "\"\xff\"", "\"a\nb\"", `""`, `"\x"`, `"open`, `"\`,
	`true`, `false`, `null`, `nul`, `1`, `-0.5e3`, `{"type":"a","message":"b"}`, `{}`, "\u2028", `"<&>"`, `"\"`,
}

// randomBody returns JSON, or something like it.
func randomBody(r *rand.Rand) string {
	member := func() string {
		return pieces[13+r.IntN(9)] + ":" + pieces[22+r.IntN(len(pieces)-22)]
	}
	var b strings.Builder
	b.WriteString("{")
	for i := range r.IntN(4) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(member())
	}
	b.WriteString("}")
	text := b.String()
	for range r.IntN(3) { // spoil it
		at := r.IntN(len(text) + 1)
		text = text[:at] + pieces[r.IntN(len(pieces))] + text[at:]
	}
	return text
}

// Property: bodies are read as encoding/json reads them, and rejected where it rejects them.
func TestDecode_AsEncodingJSON(t *testing.T) {
	seed := rand.Uint64()
	r, valid := rand.New(rand.NewPCG(seed, 1)), 0
	for range short.Count(50_000, 500_000) {
		text := randomBody(r)
		var request struct{ User, Config, Arguments string }
		err := json.Unmarshal([]byte(text), &request)
		got, gotErr := protocol.DecodeRequest([]byte(text))
		want := protocol.Request(request)
		for _, field := range []*string{&want.Config, &want.Arguments} {
			if *field == "" {
				*field = "{}"
			}
		}
		if (err == nil) != (gotErr == nil) || err == nil && got != want {
			t.Fatalf("seed %d: the request %q is %q, %v; want %q, %v", seed, text, got, gotErr, want, err)
		}
		if err == nil {
			valid++
		}
		var response struct {
			Error       *protocol.Error
			Response    json.RawMessage
			EndOfStream bool `json:"end_of_stream"`
		}
		err = json.Unmarshal([]byte(text), &response)
		gotResponse, gotErr := protocol.DecodeResponse([]byte(text))
		wantResponse := protocol.Response{Error: response.Error, EndOfStream: response.EndOfStream}
		if raw := string(response.Response); raw != "" && raw != "null" && json.Unmarshal(response.Response, &wantResponse.Text) != nil {
			wantResponse.Text = raw
		}
		if (err == nil) != (gotErr == nil) || err == nil && !cmp.Equal(gotResponse, wantResponse) {
			t.Fatalf("seed %d: the response %q is %+v, %v; want %+v, %v", seed, text, gotResponse, gotErr, wantResponse, err)
		}
	}
	if valid < 1000 {
		t.Errorf("only %d bodies were valid", valid)
	}
}

// texts are texts that JSON has to escape, or that are no UTF-8.
var texts = []string{"", "ann", `a"b\c`, "a\nb\tc\x00\x1f\x7f", "ä€😀\u2028", "a\xffb", "\xed\xa0\x80", "<script>&", strings.Repeat(`"`, 100)}

// What is written is JSON that encoding/json and this package read.
func TestEncode_AsEncodingJSON(t *testing.T) {
	for _, text := range texts {
		valid := strings.ToValidUTF8(text, "")
		if valid != text {
			valid = marshalled(t, text)
		}
		want := protocol.Request{User: valid, Config: "{}", Arguments: valid + "x"}
		body := protocol.Request{User: text, Config: "{}", Arguments: text + "x"}.Encode()
		var plain struct{ User, Config, Arguments string }
		if err := json.Unmarshal(body, &plain); err != nil || protocol.Request(plain) != want {
			t.Errorf("%q: encoding/json reads %q, %v", text, plain, err)
		}
		if got, err := protocol.DecodeRequest(body); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
		for _, failure := range []*protocol.Error{nil, {Type: "a", Message: valid}} {
			sent := protocol.Response{Error: failure, Text: text, EndOfStream: failure != nil}
			got, err := protocol.DecodeResponse(sent.Encode())
			if sent.Text = valid; err != nil || !cmp.Equal(got, sent) {
				t.Errorf("%q: got %+v, %v", text, got, err)
			}
		}
		token := protocol.Token{Service: "joke", Organization: valid, Agent: valid, Role: valid, Tool: valid, CallID: valid, Expires: time.Now().UTC().Add(time.Hour)}
		got, err := protocol.VerifyToken(token.SignRequest(want, "key"), "joke", want, time.Now(), "key")
		if got.Digest, got.ConfigDigest = "", ""; err != nil || got.Caller != valid {
			t.Errorf("%q: the token is %+v, %v", text, got, err)
		}
		if got.Caller = ""; !cmp.Equal(got, token) {
			t.Errorf("%q: the token differs:\n%s", text, cmp.Diff(token, got))
		}
	}
}

// marshalled returns a text as encoding/json writes it, read again.
func marshalled(t *testing.T, text string) (out string) {
	t.Helper()
	data, err := json.Marshal(text)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
