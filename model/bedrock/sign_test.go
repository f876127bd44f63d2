package bedrock_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// A signature covers the path, the headers and the body. It is computed here again, as
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
// describes it.
func TestSign_IsThatOfTheRequest(t *testing.T) {
	x := signedSuite().Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(text+stop("end_turn")))
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	date, authorization := x.Header.Get("X-Amz-Date"), x.Header.Get("Authorization")
	if x.Header.Get("X-Amz-Security-Token") != "session-"+key {
		t.Errorf("headers %v", x.Header)
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(strings.TrimPrefix(authorization, "AWS4-HMAC-SHA256 "), ", ") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	scope := date[:8] + "/eu-central-1/bedrock/aws4_request"
	if fields["Credential"] != "AKIDEXAMPLE/"+scope || !strings.Contains(fields["SignedHeaders"], "x-amz-security-token") || !strings.Contains(fields["SignedHeaders"], "host") {
		t.Errorf("authorization %s", authorization)
	}
	var headers strings.Builder
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		value := x.Header.Get(name)
		if name == "host" {
			value = x.Host
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, value)
	}
	var path []string // each segment of the path that is sent is escaped again
	for segment := range strings.SplitSeq(x.Path, "/") {
		path = append(path, url.PathEscape(segment))
	}
	canonical := "POST\n" + strings.Join(path, "/") + "\n\n" + headers.String() + "\n" + fields["SignedHeaders"] + "\n" + sha256Hex(x.Body)
	signing := []byte("AWS4" + key)
	for _, part := range []string{date[:8], "eu-central-1", "bedrock", "aws4_request"} {
		signing = hmacSHA256(signing, part)
	}
	want := hex.EncodeToString(hmacSHA256(signing, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+sha256Hex(canonical)))
	if fields["Signature"] != want {
		t.Errorf("got signature %s, want %s of\n%s", fields["Signature"], want, canonical)
	}
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func hmacSHA256(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Credentials that are not accepted are reported as such, and not as a missing key.
func TestSign_RejectedCredentials(t *testing.T) {
	x := signedSuite().Do(t, provider.Config{}, providertest.HelloRequest(), 403, `{"message":"The security token session-`+key+` included in the request is expired"}`)
	failure := providertest.WantError(t, x.Err, errcode.LLMCallFailed, false, "The security token *** included in the request is expired")
	if !failure.KeyInvalid || !failure.NeedsOperator {
		t.Errorf("got %+v", failure)
	}
}
