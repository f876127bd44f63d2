package config

import (
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model/provider"
)

// AWS is where a model at AWS is asked, and with which credentials.
//
//	region: eu-central-1
//	credentials: {accessKeyId: "${AWS_ACCESS_KEY_ID}", secretAccessKey: "${AWS_SECRET_ACCESS_KEY}"}
type AWS struct {
	Region                               string
	AccessKeyID, SecretKey, SessionToken yamldoc.Secret // "" if requests carry a key instead
}

// credentials returns what signs requests.
func (a AWS) credentials() provider.Credentials {
	return provider.Credentials{AccessKeyID: string(a.AccessKeyID), SecretKey: string(a.SecretKey), SessionToken: string(a.SessionToken)}
}

// The variables that AWS's own programs read.
const (
	accessKeyVariable    = "AWS_ACCESS_KEY_ID"
	secretKeyVariable    = "AWS_SECRET_ACCESS_KEY"
	sessionTokenVariable = "AWS_SESSION_TOKEN"
)

// awsFields returns the fields of a model at AWS.
func awsFields(m *Model) yamldoc.Fields {
	return yamldoc.Fields{"region": regionField(&m.AWS.Region), "credentials": credentialsField(m)}
}

// regionField reads the name of a region, which becomes a part of a host name.
func regionField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		switch text, ok := v.ReadNonEmpty(); {
		case !ok:
		case len(text) > 32 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			v.AddError("is not the name of a region", "for example eu-central-1")
		default:
			*to = text
		}
	}
}

// credentialsField reads credentials, each a variable or a file. A variable of them that is
// not set counts as the missing key.
func credentialsField(m *Model) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		var id, secret, session yamldoc.SecretSource
		v.ReadFields(yamldoc.Fields{
			"accessKeyId":     yamldoc.SecretField(&m.AWS.AccessKeyID, &id),
			"secretAccessKey": yamldoc.SecretField(&m.AWS.SecretKey, &secret),
			"sessionToken":    yamldoc.SecretField(&m.AWS.SessionToken, &session),
		})
		for _, name := range []string{"accessKeyId", "secretAccessKey"} {
			if _, ok := v.FindField(name); !ok {
				v.MissingField(name).AddError("is missing", "for example "+name+": ${NAME}")
			}
		}
		switch {
		case id.Variable != "" && m.AWS.AccessKeyID == "":
			m.KeyFrom = id.Variable
		case secret.Variable != "" && m.AWS.SecretKey == "":
			m.KeyFrom = secret.Variable
		}
	}
}

// completeAWS checks the fields of a model at AWS together. hasKey reports whether the
// document has a key.
func (it item) completeAWS(m *Model, hasKey bool) {
	at, signed := it.FindField("credentials")
	switch {
	case signed && hasKey:
		at.AddRedactedError("cannot be combined with apiKey", "leave one of them out")
	case m.AWS.Region != "":
	case m.BaseURL == "" || signed:
		if _, given := it.FindField("region"); !given {
			it.MissingField("region").AddError("is missing", "for example eu-central-1")
		}
	}
	if signed || hasKey || m.BaseURL != "" || m.Key != "" {
		return
	}
	look := func(variable string) yamldoc.Secret { return it.MissingField("credentials").LookupKey(variable) }
	if id, secret := look(accessKeyVariable), look(secretKeyVariable); id != "" && secret != "" {
		m.AWS.AccessKeyID, m.AWS.SecretKey, m.AWS.SessionToken = id, secret, look(sessionTokenVariable)
		m.KeyFrom = ""
	}
}
