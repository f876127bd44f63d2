package redact

import (
	"encoding/base64"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
)

// ValueSecrets returns the secrets in configured values. It returns each value, and the parts
// of it that a server may show alone, such as the password of an address. It leaves out
// values that are certainly public: existing files, addresses of hosts, and dates.
func ValueSecrets(values ...string) (secrets []string) {
	for _, v := range values {
		if isPublic(v) {
			continue
		}
		secrets = append(append(secrets, v), PartSecrets(v)...)
	}
	return secrets
}

// isPublic reports whether a value is not a secret.
func isPublic(value string) bool {
	if filepath.IsAbs(value) {
		_, err := os.Lstat(value)
		return err == nil
	}
	if _, err := time.Parse(time.DateOnly, value); err == nil {
		return true
	}
	u, err := url.Parse(value)
	return err == nil && u.Scheme != "" && u.Host != "" && strings.Trim(u.Path, "/") == "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// namedSecret matches a named secret in a list, as in a connection string.
var namedSecret = textutil.LazyPattern(`(?i)(?:pass|password|passwd|pwd|secret|token|key|signature)\s*=\s*([^\s;&,]+)`)

// PartSecrets returns the secrets within a value. These are its lines, the credentials after the name of
// an authentication scheme, the password and query of an address, and named passwords.
func PartSecrets(value string) (secrets []string) {
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			secrets = append(secrets, strings.TrimSpace(line))
		}
	}
	for _, found := range namedSecret().FindAllStringSubmatch(value, -1) {
		secrets = append(secrets, found[1])
	}
	return append(append(secrets, credentials(value)...), URLSecrets(value)...)
}

// credentials returns the secrets of a value such as "Bearer token".
func credentials(value string) []string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
	if rest = strings.TrimSpace(rest); !ok || rest == "" || strings.Contains(rest, " ") {
		return nil
	}
	if !strings.EqualFold(scheme, "Basic") {
		return []string{rest}
	}
	pair, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return []string{rest}
	}
	_, password, _ := strings.Cut(string(pair), ":")
	return []string{rest, string(pair), password}
}

// URLSecrets returns the secrets of an address: its password and the values of its query.
// It returns nil for other texts.
func URLSecrets(address string) (secrets []string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return nil
	}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if !isPublic(v) {
				secrets = append(secrets, v)
			}
		}
	}
	return secrets
}

// HeaderSecrets returns the secrets in configured headers. Headers that describe a request
// have none.
func HeaderSecrets(headers map[string]string) (secrets []string) {
	for name, value := range headers {
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Accept", "Accept-Charset", "Accept-Language", "Content-Type", "Content-Language", "Cache-Control", "Origin", "User-Agent":
			continue
		case "Cookie":
			for pair := range strings.SplitSeq(value, ";") {
				_, cookie, _ := strings.Cut(pair, "=")
				secrets = append(secrets, strings.TrimSpace(cookie))
			}
		}
		secrets = append(secrets, ValueSecrets(value)...)
	}
	return secrets
}
