package oidc

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// check rejects a method that is neither POST nor GET. A nil i is valid.
func (i *Introspection) check(service string) error {
	if i == nil || i.Method == "" || i.Method == http.MethodPost || i.Method == http.MethodGet {
		return nil
	}
	return errcode.New(errcode.InvalidConfig, "auth service %q: the introspection method is POST or GET, not %q", service, i.Method)
}

// introspect asks the issuer about a token (RFC 7662).
func (s *Service) introspect(ctx context.Context, from issuer, token string) (Claims, error) {
	r, err := s.introspectionRequest(ctx, from, token)
	if err != nil {
		return nil, err
	}
	client := *s.client
	client.CheckRedirect = noRedirect
	response, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, s.errIntrospectionFailed()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, s.errIntrospectionFailed()
	}
	if err := strictjson.CheckObject(body, nil); err != nil {
		return nil, s.errIntrospectionFailed()
	}
	return s.checkActive(from, Claims(body))
}

// noRedirect follows no redirect: the token would be sent along.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// errIntrospectionFailed leaves out the cause: a URL in it may contain the token.
func (s *Service) errIntrospectionFailed() error {
	return errcode.New(errcode.ToolUnavailable, "auth service %s: its issuer did not answer whether a token is active; try again later", s.config.Name)
}

func (s *Service) introspectionRequest(ctx context.Context, from issuer, token string) (*http.Request, error) {
	in := s.config.Introspection
	endpoint := in.Endpoint
	if endpoint == "" {
		endpoint = from.Introspection
	}
	if endpoint == "" {
		return nil, errcode.New(errcode.ToolUnavailable, "auth service %s: its issuer has no introspection endpoint; configure one", s.config.Name)
	}
	parameter := in.Parameter
	if parameter == "" {
		parameter = "token"
	}
	form := url.Values{parameter: {token}}.Encode()
	if in.Method == http.MethodGet {
		separator := "?"
		if strings.Contains(endpoint, "?") {
			separator = "&"
		}
		return http.NewRequestWithContext(ctx, http.MethodGet, endpoint+separator+form, nil)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form))
	if err == nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r, err
}

// checkActive checks the answer of an introspection against the configuration.
// iss and nbf are optional in it; active, aud and exp are required.
func (s *Service) checkActive(from issuer, c Claims) (Claims, error) {
	if active, _ := c.Field("active"); string(active) != "true" {
		return nil, s.reject("it is not active")
	}
	if iss, ok := c.Field("iss"); ok && gjson.ParseBytes(iss).Str != from.Issuer {
		return nil, s.reject(reasonIssuer)
	}
	if !slices.ContainsFunc(audiences(c), s.matchesAudience) {
		return nil, s.reject(reasonAudience)
	}
	return c, s.checkTimes(c)
}
