package config

import (
	"fmt"
	"slices"
	"strings"
)

// authType is a type of auth service.
type authType struct {
	name string
	read func(docItem, *AuthService)
}

// authTypes is the one place that lists what an auth service can be.
func authTypes() []authType {
	return []authType{{AuthGeneric, readGeneric}, {AuthGoogle, readGoogle}}
}

func readAuthService(it docItem) {
	it.declare()
	known := authTypes()
	i, ok := it.typeIndex("auth service", len(known), func(i int) string { return known[i].name })
	if !ok {
		return
	}
	s := AuthService{Name: it.name, Type: known[i].name, Pos: it.pos}
	known[i].read(it, &s)
	s.Fingerprint = it.fingerprint()
	it.checkSingleton(s)
	it.doc.config.AuthServices = append(it.doc.config.AuthServices, s)
}

func readGeneric(it docItem, s *AuthService) {
	ask := Introspection{}
	var audience string
	it.fields(
		typeField(),
		field{"audience", nonEmptyField(&audience)},
		field{"authorizationServer", serverURL(&s.Issuer)},
		field{"mcpEnabled", boolField(&s.MCPEnabled)},
		field{"scopesRequired", nameList(&s.Scopes, "scopes")},
		field{"introspectionEndpoint", serverURL(&ask.Endpoint)},
		field{"introspectionMethod", introspectionMethod(&ask.Method)},
		field{"introspectionParamName", nonEmptyField(&ask.Parameter)},
		field{"forceIntrospection", boolField(&ask.Always)},
	)
	it.requireFields("audience", "authorizationServer")
	s.Audience = []string{audience}
	if s.MCPEnabled {
		s.Introspection = &ask
	}
	it.fieldsNeedMCP(s, "scopesRequired", "introspectionEndpoint", "introspectionMethod", "introspectionParamName", "forceIntrospection")
}

func readGoogle(it docItem, s *AuthService) {
	var client, audience string
	it.fields(
		typeField(),
		field{"clientId", nonEmptyField(&client)},
		field{"audience", nonEmptyField(&audience)},
		field{"mcpEnabled", boolField(&s.MCPEnabled)},
		field{"scopesRequired", nameList(&s.Scopes, "scopes")},
	)
	s.Issuer = googleIssuer
	_, hasClient := it.child("clientId")
	_, hasAudience := it.child("audience")
	// A token that a caller sends beside its call is for the client, one for
	// MCP for the server.
	switch {
	case !hasClient && !hasAudience:
		it.missing("clientId").fail("is missing, and audience too", "one of both says whom a token has to be for; without it every token of Google would do")
	case hasClient && (!s.MCPEnabled || !hasAudience):
		s.Audience = []string{client}
	default:
		s.Audience = []string{audience}
	}
	it.fieldsNeedMCP(s, "scopesRequired")
}

// fieldsNeedMCP refuses fields that nobody looks at without mcpEnabled.
func (it docItem) fieldsNeedMCP(s *AuthService, fields ...string) {
	if s.MCPEnabled {
		return
	}
	for _, name := range fields {
		if at, ok := it.child(name); ok {
			at.fail("goes with mcpEnabled: true, which is not there", "")
		}
	}
}

// checkSingleton refuses a second service for the callers of MCP.
func (it docItem) checkSingleton(s AuthService) {
	all := it.doc.config.AuthServices
	i := slices.IndexFunc(all, func(other AuthService) bool { return other.MCPEnabled })
	if s.MCPEnabled && i >= 0 {
		at, _ := it.child("mcpEnabled")
		at.fail(fmt.Sprintf("is true a second time; the first is at %s", all[i].Pos), "one service vouches for the callers of MCP")
	}
}

func introspectionMethod(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		switch text = strings.ToUpper(text); text {
		case "GET", "POST":
			*to = text
		default:
			v.failType("GET or POST", "")
		}
	}
}
