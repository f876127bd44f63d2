package mcpauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// plainError returns an error of a token endpoint with only its status and its code. The text that
// the endpoint has sent may contain a token.
func plainError(err error) error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if e.Response != nil {
			status = e.Response.StatusCode
		}
		return fmt.Errorf("the issuer answered %d %s%s", status, http.StatusText(status), codeText(e.ErrorCode))
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		u, parseErr := url.Parse(e.URL)
		if parseErr != nil {
			return fmt.Errorf("ask the issuer: %w", e.Err)
		}
		return fmt.Errorf("ask the issuer at %s: %w", u.Host, e.Err)
	}
	return err
}

// codeText returns the code of an error of OAuth in parentheses; "" for anything else.
func codeText(code string) string {
	if code == "" || len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return " (" + code + ")"
}

// scopesOf returns the scopes that an authorization URL requests.
func scopesOf(authorization string) []string {
	u, err := url.Parse(authorization)
	if err != nil {
		return nil
	}
	return strings.Fields(u.Query().Get("scope"))
}
