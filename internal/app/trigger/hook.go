package trigger

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/payload"
	"github.com/rolecall/rolecall/org"
)

// FindHook returns the trigger of type http with a name, if a request with this header and body
// carries its secret. It reports false otherwise, and takes as long for a trigger that does not
// exist. It is a gateway.Config.Hooks.
func (e *Engine) FindHook(name string, header http.Header, body []byte) (gateway.Hook, bool) {
	r, known := e.ruleByName(name)
	if !known || r.Hook == nil || r.RoleID == "" || r.template == nil {
		r, known = Rule{}, false
	}
	if !e.carriesSecret(r.Hook, header, body) || !known {
		return gateway.Hook{}, false
	}
	return gateway.Hook{
		By: identity.ByTrigger(r.Name, r.RoleID),
		Start: func(ctx context.Context, by identity.Principal) (identity.TaskID, error) {
			return e.startRequest(ctx, by, r, header, body)
		},
	}, true
}

// carriesSecret reports whether a request has the signature or the token of a hook. It computes
// one signature in any case, so that its duration does not depend on the hook, which may be nil.
func (e *Engine) carriesSecret(hook *config.TriggerHook, header http.Header, body []byte) bool {
	signed := &config.HookHMAC{Header: "Authorization"}
	token := &config.HookToken{Header: "Authorization"}
	key := e.decoy[:]
	hasToken := false
	if hook != nil && hook.HMAC != nil && hook.HMAC.Secret != "" {
		signed, key = hook.HMAC, []byte(hook.HMAC.Secret)
	}
	if hook != nil && hook.Token != nil && hook.Token.Secret != "" {
		token, hasToken = hook.Token, true
	}
	signature := hasSignature(signed, key, header, body)
	bearer := hasTokenIn(token, header)
	return signature && signed.Secret != "" || bearer && hasToken
}

// hasSignature reports whether a header has the signature of a body.
func hasSignature(h *config.HookHMAC, key []byte, header http.Header, body []byte) bool {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	digits, prefixed := strings.CutPrefix(singleHeader(header, h.Header), h.Prefix)
	given, err := hex.DecodeString(digits)
	return hmac.Equal(given, mac.Sum(nil)) && err == nil && prefixed
}

// hasTokenIn reports whether a header has the token of a hook.
func hasTokenIn(h *config.HookToken, header http.Header) bool {
	given := singleHeader(header, h.Header)
	if h.Header == "Authorization" {
		scheme, token, _ := strings.Cut(given, " ")
		if given = ""; strings.EqualFold(scheme, "Bearer") {
			given = strings.TrimLeft(token, " ")
		}
	}
	want, got := sha256.Sum256([]byte(h.Secret)), sha256.Sum256([]byte(given)) // of the same length
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 && given != ""
}

// singleHeader returns the value of a header, "" if it is missing or sent twice.
func singleHeader(header http.Header, name string) string {
	if list := header.Values(name); len(list) == 1 {
		return list[0]
	}
	return ""
}

// maxHeaderKey is the longest key in a header, in bytes.
const maxHeaderKey = 128

// startRequest starts the task of a request that carries the secret of a trigger.
func (e *Engine) startRequest(ctx context.Context, by identity.Principal, r Rule, header http.Header, body []byte) (identity.TaskID, error) {
	document, err := payload.Parse(body)
	if err != nil {
		return "", err
	}
	key, err := keyOf(r, header, body, document)
	if err != nil {
		return "", err
	}
	return e.start(ctx, by, r, org.TaskTrigger{}, key, document)
}

// keyOf returns the idempotency key of a request: the value that the trigger names, else the
// digest of the body.
func keyOf(r Rule, header http.Header, body []byte, document payload.Document) (string, error) {
	switch {
	case r.key != nil:
		text, ok := document.Text(*r.key)
		if !ok {
			return "", errcode.New(errcode.InvalidArguments, "the body has no key: the trigger reads a text or number of at most 128 bytes at a pointer").With("field", "key")
		}
		return "key:" + text, nil
	case r.Key.Header != "":
		text := singleHeader(header, r.Key.Header)
		if text == "" || len(text) > maxHeaderKey {
			return "", errcode.New(errcode.InvalidArguments, "the request has no key: send the header %s once, with at most %d bytes", r.Key.Header, maxHeaderKey)
		}
		return "key:" + text, nil
	}
	sum := sha256.Sum256(body)
	return "body:" + hex.EncodeToString(sum[:]), nil
}

// errRemoved returns the error for a trigger that a reload has removed.
func errRemoved(name string) error {
	return errcode.New(errcode.Unauthenticated, "the trigger %q was removed", name)
}
