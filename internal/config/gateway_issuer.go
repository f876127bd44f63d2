package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/org/hosts"
)

// Issuer is an OpenID Connect issuer whose tokens the gateway accepts.
//
//	auth:
//	  - name: corp
//	    issuer: https://id.example.com/realms/corp
//	    audience: [https://gw.example.com/mcp]
//	    roles:
//	      - {claim: /groups, value: finance, role: reader}
type Issuer struct {
	Name     string // begins the names of its users
	URL      string
	Audience []string    // a token must be for one of them
	Scopes   []string    // a token must have all of them
	User     string      // the claim that names the user
	Roles    []ClaimRule // the first that matches decides

	ClientID     string         `json:",omitempty"` // of this program, for users who sign in with a browser; "" for none
	ClientSecret yamldoc.Secret `json:",omitempty"` // "" for a public client

	Introspection *toolboxfile.Introspection `json:",omitzero"` // of tokens that are not JWTs; nil means they are rejected

	Fingerprint string `json:"-"` // the same for issuers whose tokens are verified in the same way
	Pos         yamldoc.Pos
}

// ClaimRule says what a user may ask for whose claim is a text, or a list that contains it.
type ClaimRule struct {
	Claim    string // JSON pointer into the claims, such as /realm_access/roles
	Value    string
	Role     string // a role of this configuration; "" if Operator
	Operator bool
	Pos      yamldoc.Pos
}

// The largest numbers of issuers, and of rules of one issuer.
const (
	maxIssuers    = 16
	maxClaimRules = 100
)

// defaultUserClaim is the claim that issuers never use for another user.
const defaultUserClaim = "sub"

// maxIssuerName is the longest name of an issuer, in bytes.
const maxIssuerName = 32

// issuerList reads the list of issuers. No two have the same name or URL.
func issuerList(it item, to *[]Issuer) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of issuers", "each has name, issuer, audience and roles")
			return
		}
		if n := len(v.Node.Content); n > maxIssuers {
			v.AddError(fmt.Sprintf("has %d issuers; the limit is %d", n, maxIssuers), "")
			return
		}
		for _, entry := range v.ListItems() {
			issuer, ok := it.readIssuer(entry)
			if ok && checkUniqueIssuer(entry, issuer, *to) {
				*to = append(*to, issuer)
			}
		}
	}
}

// checkUniqueIssuer reports whether an issuer differs from the others in name and URL, and has the
// only introspection of opaque tokens. It reports what is wrong.
func checkUniqueIssuer(entry yamldoc.Value, issuer Issuer, others []Issuer) bool {
	for _, other := range others {
		switch {
		case other.Name == issuer.Name:
			entry.AddError(fmt.Sprintf("issuer %s is listed twice; the first is at %s", yamldoc.QuoteText(issuer.Name), other.Pos), "")
		case other.URL == issuer.URL:
			entry.AddError(fmt.Sprintf("has the same issuer as the entry at %s", other.Pos), "list all audiences in one entry")
		case other.Introspection != nil && issuer.Introspection != nil:
			entry.AddError(fmt.Sprintf("has introspection like the entry at %s", other.Pos), "a token that is not a JWT does not say which issuer to ask")
		default:
			continue
		}
		return false
	}
	return true
}

// readIssuer reads one issuer. It returns false if it has reported an error.
func (it item) readIssuer(v yamldoc.Value) (issuer Issuer, ok bool) {
	if !v.IsMapping() {
		v.AddTypeError("a mapping of name, issuer, audience and roles", "")
		return issuer, false
	}
	before := v.ErrorCount()
	issuer = Issuer{User: defaultUserClaim, Pos: v.Pos}
	v.ReadFields(yamldoc.Fields{
		"name":          issuerNameField(&issuer.Name),
		"issuer":        issuerURLField(&issuer.URL),
		"audience":      yamldoc.NameList(&issuer.Audience, "audiences"),
		"scopes":        yamldoc.NameList(&issuer.Scopes, "scopes"),
		"user":          yamldoc.NonEmptyField(&issuer.User),
		"roles":         it.claimRules(&issuer.Roles),
		"clientId":      yamldoc.NonEmptyField(&issuer.ClientID),
		"clientSecret":  yamldoc.RequiredSecret(&issuer.ClientSecret),
		"introspection": introspectionField(&issuer.Introspection),
	})
	requireFields(v, "name", "issuer", "audience", "roles")
	if v.ErrorCount() == before && len(issuer.Audience) == 0 {
		v.MissingField("audience").AddError("is empty", "without an audience, tokens that were issued for others would be accepted")
	}
	if _, there := v.FindField("clientSecret"); there && issuer.ClientID == "" && v.ErrorCount() == before {
		v.MissingField("clientSecret").AddRedactedError("needs clientId", "")
	}
	issuer.Fingerprint = issuer.fingerprint()
	return issuer, v.ErrorCount() == before
}

// fingerprint returns a text of the fields that say how tokens are verified.
func (i Issuer) fingerprint() string {
	var in toolboxfile.Introspection
	if i.Introspection != nil {
		in = *i.Introspection
	}
	return fmt.Sprintf("%q %q %q %t %q %q %q %t", i.URL, i.Audience, i.Scopes, i.Introspection != nil, in.Endpoint, in.Method, in.Parameter, in.Always)
}

// checkUserNames rejects tokens whose name a user of an issuer may have: records name both.
func (g Gateway) checkUserNames(it item) {
	list, there := it.FindField("tokens")
	if !there || !list.IsList() {
		return
	}
	named := map[yamldoc.Pos]string{}
	for _, t := range g.Tokens {
		named[t.Pos] = t.Name
	}
	for _, entry := range list.ListItems() {
		issuer, user, cut := strings.Cut(named[entry.Pos], ":")
		if cut && slices.ContainsFunc(g.Issuers, func(i Issuer) bool { return i.Name == issuer }) {
			entry.AddRedactedError(fmt.Sprintf("token %s has a name that users of the issuer %s may have", yamldoc.QuoteText(issuer+":"+user), issuer), "rename the token or the issuer")
		}
	}
}

// requireFields reports the fields that a mapping lacks.
func requireFields(v yamldoc.Value, names ...string) {
	for _, name := range names {
		if _, there := v.FindField(name); !there {
			v.MissingField(name).AddError("is missing", "")
		}
	}
}

// issuerNameField reads the name of an issuer: letters, digits, "-", "_" and ".". It has no
// colon, so that a name of a user has one meaning.
func issuerNameField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
		if len(text) > maxIssuerName || strings.Trim(text, letters) != "" {
			v.AddError(fmt.Sprintf("must have at most %d letters, digits, \"-\", \"_\" and \".\"", maxIssuerName), "for example corp; it begins the names of its users")
			return
		}
		if identity.UserName(text + ":").IsTrigger() {
			v.AddError("is reserved: the names of triggers begin so", "choose another name")
			return
		}
		*to = text
	}
}

// issuerURLField reads the URL of an issuer. Without TLS any host between could replace its
// keys, so http is accepted for this machine only.
func issuerURLField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := v.ErrorCount()
		yamldoc.ServerURL(to)(v)
		if v.ErrorCount() > before {
			return
		}
		u, err := url.Parse(*to)
		switch {
		case err != nil || u.RawQuery != "" || u.ForceQuery:
			v.AddTypeError("a URL without a query", "for example https://id.example.com/realms/corp")
		case u.Scheme != "https" && !hosts.IsLoopback(u.Hostname()):
			v.AddError("must begin with https://", "http is accepted for an issuer on this machine only")
		}
	}
}

// claimRules reads the rules of an issuer.
func (it item) claimRules(to *[]ClaimRule) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		const hint = "for example [{claim: /groups, value: finance, role: reader}]"
		switch n := len(v.Node.Content); {
		case !v.IsList():
			v.AddTypeError("a list of rules", hint)
			return
		case n == 0:
			v.AddError("is empty", hint)
			return
		case n > maxClaimRules:
			v.AddError(fmt.Sprintf("has %d rules; the limit is %d", n, maxClaimRules), "")
			return
		}
		for _, entry := range v.ListItems() {
			rule, ok := it.readClaimRule(entry)
			if !ok {
				continue
			}
			i := slices.IndexFunc(*to, func(other ClaimRule) bool { return other.Claim == rule.Claim && other.Value == rule.Value })
			if i >= 0 {
				entry.AddError(fmt.Sprintf("has the claim and the value of the rule at %s", (*to)[i].Pos), "the first rule decides")
				continue
			}
			*to = append(*to, rule)
		}
	}
}

// readClaimRule reads one rule. It returns false if it has reported an error.
func (it item) readClaimRule(v yamldoc.Value) (rule ClaimRule, ok bool) {
	if !v.IsMapping() {
		v.AddTypeError("a mapping of claim, value, and role or operator", "")
		return rule, false
	}
	before := v.ErrorCount()
	rule.Pos = v.Pos
	v.ReadFields(yamldoc.Fields{
		"claim":    claimPointerField(&rule.Claim),
		"value":    yamldoc.NonEmptyField(&rule.Value),
		"role":     it.ReferenceField("role", &rule.Role),
		"operator": yamldoc.BoolField(&rule.Operator),
	})
	requireFields(v, "claim", "value")
	if v.ErrorCount() == before && (rule.Role != "") == rule.Operator {
		v.AddError("needs one of role and operator: true", "")
	}
	return rule, v.ErrorCount() == before
}

// claimPointerField reads a JSON pointer (RFC 6901) to a claim.
func claimPointerField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		unescaped := strings.NewReplacer("~0", "", "~1", "").Replace(text)
		if text[0] != '/' || len(text) < 2 || strings.Contains(unescaped, "~") {
			v.AddTypeError("a JSON pointer", "for example /groups or /realm_access/roles")
			return
		}
		*to = text
	}
}

// introspectionField reads how an issuer is asked about tokens that are not JWTs.
func introspectionField(to **toolboxfile.Introspection) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		in := new(toolboxfile.Introspection)
		before := v.ErrorCount()
		yamldoc.MappingField(yamldoc.Fields{
			"endpoint":  issuerURLField(&in.Endpoint),
			"method":    yamldoc.OneOfField(&in.Method, "POST", "GET"),
			"parameter": yamldoc.NonEmptyField(&in.Parameter),
			"always":    yamldoc.BoolField(&in.Always),
		})(v)
		if v.ErrorCount() == before {
			*to = in
		}
	}
}
