package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// response gives a document as an answer to r.
func (d document) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(d.status), StatusCode: d.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, Body: io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)), Request: r,
	}
}

// check refuses what is no way to ask.
func (i *Introspection) check(service string) error {
	if i == nil || i.Method == "" || i.Method == http.MethodPost || i.Method == http.MethodGet {
		return nil
	}
	return errcode.New(errcode.InvalidConfig, "auth service %q: tokens are introspected by POST or GET, not %q", service, i.Method)
}

// introspect asks the issuer about a token (RFC 7662).
func (s *Service) introspect(ctx context.Context, found issuer, token string) (Claims, error) {
	r, err := s.introspectionRequest(ctx, found, token)
	if err != nil {
		return nil, err
	}
	client := *s.client
	client.CheckRedirect = noRedirect
	answer, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, s.unanswered()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, s.unanswered()
	}
	if err := strictjson.Object(body, nil); err != nil {
		return nil, s.unanswered()
	}
	return s.active(found, Claims(body))
}

// noRedirect follows no redirect: the token would go along.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// unanswered leaves out the cause: a URL in it may hold the token.
func (s *Service) unanswered() error {
	return errcode.New(errcode.ToolUnavailable, "auth service %s: its issuer did not say whether a token is active; try again later", s.config.Name)
}

func (s *Service) introspectionRequest(ctx context.Context, found issuer, token string) (*http.Request, error) {
	in := s.config.Introspection
	endpoint := in.Endpoint
	if endpoint == "" {
		endpoint = found.Introspection
	}
	if endpoint == "" {
		return nil, errcode.New(errcode.ToolUnavailable, "auth service %s: its issuer names no introspection endpoint; configure one", s.config.Name)
	}
	parameter := in.Parameter
	if parameter == "" {
		parameter = "token"
	}
	form := url.Values{parameter: {token}}.Encode()
	if in.Method == http.MethodGet {
		joint := "?"
		if strings.Contains(endpoint, "?") {
			joint = "&"
		}
		return http.NewRequestWithContext(ctx, http.MethodGet, endpoint+joint+form, nil)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form))
	if err == nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r, err
}

// active holds what introspection said against the configuration. An issuer
// that it does not name it vouches for by active, and so it does from when on;
// audience and expiry it has to name.
func (s *Service) active(found issuer, c Claims) (Claims, error) {
	if on, _ := c.Field("active"); string(on) != "true" {
		return nil, s.refuse("it is not active")
	}
	if iss, ok := c.Field("iss"); ok && gjson.ParseBytes(iss).Str != found.Issuer {
		return nil, s.refuse("it is of another issuer")
	}
	if !slices.ContainsFunc(audiences(c), s.matchesAudience) {
		return nil, s.refuse("it is for another audience")
	}
	return c, s.checkTimes(c)
}

// audiences gives the claim aud: one text, or a list of texts.
func audiences(c Claims) []string {
	raw, _ := c.Field("aud")
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
