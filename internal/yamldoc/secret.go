package yamldoc

import (
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Secret is a text that is never printed. It is empty or prints as ***.
type Secret string

// String returns *** for a secret that is not empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns the same as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretSource is where a secret comes from: one of an environment variable and a file.
type SecretSource struct {
	Variable string
	File     string // from the working directory, or absolute
}

// parseSource returns the source that text, one variable or file, names.
func parseSource(text string) (source SecretSource, ok bool) {
	inner, opened := strings.CutPrefix(text, "${")
	inner, closed := strings.CutSuffix(inner, "}")
	if !opened || !closed || strings.ContainsAny(inner, "{}") {
		return source, false
	}
	if name, path, found := strings.Cut(inner, ":"); found {
		return SecretSource{File: path}, name == fileName && path != ""
	}
	return SecretSource{Variable: inner}, inner != fileName && isVariable(inner)
}

// SecretField reads a key, which must be written as a variable or a file because
// documents are stored with every task. The variable may be unset: the error
// comes when the key is used. The file must exist.
func SecretField(to *Secret, from *SecretSource) func(Value) {
	return FileAllowed(func(v Value) {
		if !v.IsScalar() {
			v.AddRedactedError("must be a variable", "for example ${OPENAI_API_KEY}")
			return
		}
		source, ok := parseSource(v.Node.Value)
		switch {
		case !ok:
			v.AddRedactedError("must be only a variable, because documents are stored with every task", "write ${OPENAI_API_KEY}, for example, and set that variable; or ${file:/run/secrets/NAME}")
			return
		case source.File != "":
			source.File = v.FilePath(source.File)
			*to = v.fileKey(source.File)
		default:
			*to = v.LookupKey(source.Variable)
		}
		*from = source
	})
}

// RequiredSecret reads a key as SecretField does, but rejects a variable that
// is not set.
func RequiredSecret(to *Secret) func(Value) {
	return func(v Value) {
		var from SecretSource
		SecretField(to, &from)(v)
		if from.Variable != "" && *to == "" {
			v.AddRedactedError("variable "+ClipText(from.Variable)+" is not set", "set it")
		}
	}
}

// SecretText reads a secret that may have several lines, such as a private key. It must be
// written as a variable that is set, or as a file.
func SecretText(to *Secret) func(Value) {
	return FileAllowed(func(v Value) {
		if !v.IsScalar() {
			v.AddRedactedError("must be a variable or a file", "for example ${file:/run/secrets/NAME}")
			return
		}
		if _, ok := parseSource(v.Node.Value); !ok {
			v.AddRedactedError("must be only a variable or a file, because documents are stored with every task", "write ${file:/run/secrets/NAME}, for example")
			return
		}
		if text, ok := v.ReadScalar(); ok {
			*to = Secret(text)
		}
	})
}

// ParseKey returns text as a key, without surrounding white space, which shells and
// editors add. It reports false for a key that no header can have.
func ParseKey(text string) (key Secret, ok bool) {
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", false
	}
	return Secret(text), true
}

// LookupKey returns the value of a variable as a key.
func (v Value) LookupKey(variable string) Secret {
	text, _ := v.doc.reader.env(variable)
	key, ok := ParseKey(text)
	if !ok {
		v.AddRedactedError("variable "+ClipText(variable)+" is not a valid key: it has characters that are not printable ASCII", "set it again")
	}
	return key
}

// fileKey returns the content of the file at path, which v names, as a key.
func (v Value) fileKey(path string) Secret {
	text, ok := v.substituted()
	if !ok {
		return ""
	}
	key, ok := ParseKey(text)
	switch {
	case !ok:
		v.AddRedactedError("file "+quotePath(path)+" has no valid key: it has characters that are not printable ASCII", "write it again")
	case key == "":
		v.AddRedactedError("file "+quotePath(path)+" is empty", "write the key into it")
	}
	return key
}

// PasswordField reads a secret that may be in clear text.
func PasswordField(to *Secret) func(Value) {
	return FileAllowed(func(v Value) {
		if !v.IsScalar() || v.IsNull() {
			v.AddRedactedError("must be text", "for example ${PASSWORD}")
			return
		}
		if text, ok := v.ReadScalar(); ok {
			*to = Secret(text)
		}
	})
}

// SecretMap reads a mapping of names to secret texts. check returns the canonical
// name, or the problem with a name. Its errors have no excerpts: the values may be
// in clear text.
func SecretMap(to *map[string]Secret, check func(string) (string, string)) func(Value) {
	return secretMap(to, check, func(string, Value) problem { return problem{} })
}

// HeaderMap reads a mapping of names of HTTP headers to secret texts. A credential must be
// written with a variable or a file, because documents are stored with every task.
func HeaderMap(to *map[string]Secret) func(Value) {
	return secretMap(to, CheckHeaderName, checkCredential)
}

// secretMap reads a mapping as SecretMap does. checkValue returns the problem with a value,
// of which the name is canonical.
func secretMap(to *map[string]Secret, checkName func(string) (string, string), checkValue func(string, Value) problem) func(Value) {
	return FileAllowed(func(v Value) {
		if !v.IsMapping() {
			v.AddRedactedError("must be a mapping of names to texts", "")
			return
		}
		all := map[string]Secret{}
		for key, val := range v.MapPairs() {
			name, problem := checkName(key.Node.Value)
			if _, ok := all[name]; problem == "" && ok {
				problem = "is a duplicate"
			}
			if problem != "" {
				key.AddRedactedError(problem, "")
				continue
			}
			if !val.IsScalar() {
				val.AddRedactedError("must be text", "")
				continue
			}
			if p := checkValue(name, val); p.message != "" {
				val.AddRedactedError(p.message, p.hint)
			}
			if word, ok := val.ReadText(); ok {
				all[name] = Secret(word)
			}
		}
		*to = all
	})
}

// Credentials in headers: those with such a name, and values that begin with the name of an
// authentication scheme.
var (
	credentialHeader = textutil.LazyPattern(`(?i)(^|[-_])(authorization|auth|cookie|(api)?key|token|secret|password|signature|credentials?)$`)
	credentialValue  = textutil.LazyPattern(`(?i)^\s*(basic|bearer|digest|token)\s+\S`)
)

// sourceInText matches a variable without a default, or a file, in a text.
var sourceInText = textutil.LazyPattern(`(^|[^$])\$\{(file:[^}]+|\w+:?)\}`)

// checkCredential returns the problem with a header that has a credential in clear text.
func checkCredential(name string, v Value) problem {
	text := v.Node.Value
	if text == "" || sourceInText().MatchString(text) || !credentialHeader().MatchString(name) && !credentialValue().MatchString(text) {
		return problem{}
	}
	return problem{
		message: "must have its secret in a variable, because documents are stored with every task",
		hint:    "write ${NAME} and set that variable; or ${file:/run/secrets/NAME}",
	}
}
