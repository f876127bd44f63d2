package yamldoc

import "strings"

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

// SecretField reads a secret, which must be written as a variable because
// documents are stored with every task. The variable may be unset: the error
// comes when the secret is used.
func SecretField(to *Secret, from *string) func(Value) {
	return func(v Value) {
		if !v.IsScalar() {
			v.AddRedactedError("must be a variable", "for example ${OPENAI_API_KEY}")
			return
		}
		name, ok := strings.CutPrefix(v.Node.Value, "${")
		name, closed := strings.CutSuffix(name, "}")
		name, _, fallback := strings.Cut(name, ":")
		if !ok || !closed || fallback || !isVariable(name) {
			v.AddRedactedError("must be only a variable, because documents are stored with every task", "write ${OPENAI_API_KEY}, for example, and set that variable")
			return
		}
		*to, *from = v.LookupKey(name), name
	}
}

// RequiredSecret reads a secret as SecretField does, but rejects a variable that
// is not set.
func RequiredSecret(to *Secret) func(Value) {
	return func(v Value) {
		var from string
		SecretField(to, &from)(v)
		if from != "" && *to == "" {
			v.AddRedactedError("variable "+ClipText(from)+" is not set", "set it")
		}
	}
}

// LookupKey returns the value of a variable as a key, without surrounding white
// space, which shells and editors add.
func (v Value) LookupKey(variable string) Secret {
	text, _ := v.doc.reader.env(variable)
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.AddRedactedError("variable "+ClipText(variable)+" is not a valid key: it has characters that are not printable ASCII", "set it again")
		return ""
	}
	return Secret(text)
}

// PasswordField reads a secret that may be in clear text.
func PasswordField(to *Secret) func(Value) {
	return func(v Value) {
		if !v.IsScalar() || v.IsNull() {
			v.AddRedactedError("must be text", "for example ${PASSWORD}")
			return
		}
		if text, ok := v.ReadScalar(); ok {
			*to = Secret(text)
		}
	}
}

// SecretMap reads a mapping of names to secret texts. check returns the canonical
// name, or the problem with a name. Its errors have no excerpts: the values may be
// in clear text.
func SecretMap(to *map[string]Secret, check func(string) (string, string)) func(Value) {
	return func(v Value) {
		if !v.IsMapping() {
			v.AddRedactedError("must be a mapping of names to texts", "")
			return
		}
		all := map[string]Secret{}
		for key, val := range v.MapPairs() {
			name, problem := check(key.Node.Value)
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
			if word, ok := val.ReadText(); ok {
				all[name] = Secret(word)
			}
		}
		*to = all
	}
}
