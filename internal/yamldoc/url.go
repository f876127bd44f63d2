package yamldoc

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
)

// ServerURL reads an http or https URL without password and fragment.
func ServerURL(to *string) func(Value) {
	return func(v Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.AddRedactedError("must be an address", "for example https://mcp.example.com/mcp")
		case u.User != nil || u.Fragment != "":
			v.AddRedactedError("contains a password or a fragment", "a token is written as auth: {bearer: ${TOKEN}}")
		default:
			*to = text
		}
	}
}

// CheckHeaderName checks the name of an HTTP header for SecretMap. It returns the canonical
// form of the name, or the problem with it.
func CheckHeaderName(name string) (string, string) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
		return "", "is not a valid header name"
	}
	return http.CanonicalHeaderKey(name), ""
}

// RelativePath returns a path that the document may have given relative to itself.
// The result contains a slash, so that it is never looked up in PATH.
func (v Value) RelativePath(path string) string {
	path = v.FilePath(path)
	if path != "." && !strings.ContainsRune(path, '/') {
		path = "./" + path
	}
	return path
}

// FilePath returns a path relative to the document's directory as a path from the
// working directory. An absolute path stays as it is.
func (v Value) FilePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(v.Pos.File), path)
}
