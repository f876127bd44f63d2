package config

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// sourceType is a type of source and its fields.
type sourceType struct {
	name   string
	needs  []string // required fields
	fields func(docItem, *Source) []field
}

// sourceTypes returns all types of sources. It is the only list of them.
func sourceTypes() []sourceType {
	return []sourceType{
		{SourceSQLite, []string{"database"}, sqliteFields},
		{SourcePostgres, []string{"host", "port", "user", "database"}, postgresFields},
		{SourceCloudSQLPostgres, []string{"project", "region", "instance", "database"}, cloudFields},
		{SourceMySQL, []string{"host", "port"}, mysqlFields},
		{SourceHTTP, []string{"baseUrl"}, httpFields},
	}
}

// maxDatabaseConns is the largest value of maxConnections.
const maxDatabaseConns = 10_000

// readSource reads a document of kind source.
func readSource(it docItem) {
	before := len(it.doc.errs)
	it.declare()
	known := sourceTypes()
	i, ok := it.typeIndex("source", len(known), func(i int) string { return known[i].name })
	if !ok {
		return
	}
	s := Source{Name: it.name, Type: known[i].name, Pos: it.pos}
	it.fields(slices.Concat([]field{typeField()}, known[i].fields(it, &s), []field{
		{"maxResponseBytes", intField(&s.MaxResponseBytes, maxResponseBytes)},
		{"timeout", durationField(&s.Timeout, maxCallTime)},
	})...)
	it.requireFields(known[i].needs...)
	s.Fingerprint, s.Invalid = it.fingerprint(s.Database), len(it.doc.errs) > before
	it.doc.config.Sources = append(it.doc.config.Sources, s)
}

// sqliteFields returns the fields of a SQLite database.
func sqliteFields(_ docItem, s *Source) []field {
	return append(databaseFields(s), field{"database", databaseField(&s.Database)})
}

// postgresFields returns the fields of PostgreSQL.
func postgresFields(_ docItem, s *Source) []field {
	return append(serverFields(s),
		field{"queryExecMode", oneOfField(&s.QueryExecMode, "cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol")},
	)
}

// mysqlFields returns the fields of MySQL. queryTimeout is Toolbox's name of timeout.
func mysqlFields(it docItem, s *Source) []field {
	return append(serverFields(s), field{"queryTimeout", func(v value) {
		if _, ok := it.child("timeout"); ok {
			v.fail("cannot be combined with timeout", "leave one out")
			return
		}
		durationField(&s.Timeout, maxCallTime)(v)
	}})
}

// cloudFields returns the fields of a Cloud SQL instance.
func cloudFields(_ docItem, s *Source) []field {
	s.IPType = "public"
	return append(databaseFields(s),
		field{"project", scalarTextField(&s.Project)},
		field{"region", scalarTextField(&s.Region)},
		field{"instance", scalarTextField(&s.Instance)},
		field{"ipType", ipTypeField(&s.IPType)},
		field{"database", scalarTextField(&s.Database)},
		field{"user", scalarTextField(&s.User)},
		field{"password", passwordField(&s.Password)},
	)
}

// serverFields returns the fields of a database on a server.
func serverFields(s *Source) []field {
	return append(databaseFields(s),
		field{"host", scalarTextField(&s.Host)},
		field{"port", portField(&s.Port)},
		field{"user", scalarTextField(&s.User)},
		field{"password", passwordField(&s.Password)},
		field{"database", scalarTextField(&s.Database)},
		field{"queryParams", textMap(&s.Params)},
	)
}

// databaseFields returns the fields of all databases.
func databaseFields(s *Source) []field {
	return []field{
		{"readOnly", boolField(&s.ReadOnly)},
		{"maxConnections", intField(&s.MaxConns, maxDatabaseConns)},
		{"maxRows", countField(&s.MaxRows)},
	}
}

// httpFields returns the fields of an HTTP service.
func httpFields(_ docItem, s *Source) []field {
	return []field{
		{"baseUrl", serverURL(&s.BaseURL)},
		{"headers", secretMap(&s.Headers, headerName)},
		{"queryParams", secretMap(&s.QueryParams, queryName)},
		{"readOnly", boolField(&s.ReadOnly)},
		{"disableSslVerification", sslVerification},
	}
}

// sslVerification rejects disableSslVerification: true.
func sslVerification(v value) {
	var off bool
	if boolField(&off)(v); off {
		v.fail("is not supported: requests could be read and changed in transit", "install the CA certificate of the server, or name its file in SSL_CERT_FILE")
	}
}

// queryName checks the name of a query parameter.
func queryName(name string) (string, string) {
	if name == "" {
		return "", "is not a valid name of a query parameter"
	}
	return name, ""
}

// typeIndex reads the type of a document and returns its index among n types with
// the given names. In the v1 form the type may be in the field kind.
func (it docItem) typeIndex(kind string, n int, name func(int) string) (int, bool) {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	at, ok := it.child("type")
	if older, found := it.child("kind"); it.v1Entry && found {
		if ok {
			at.fail("cannot be combined with kind", "in Toolbox's v1 form both are the type; leave one out")
			return 0, false
		}
		at, ok = older, true
	}
	if !ok {
		it.missing("type").fail("is missing", listHint("there are ", all))
		return 0, false
	}
	word, ok := at.nonEmpty()
	if !ok {
		return 0, false
	}
	i := slices.Index(all, word)
	if i < 0 {
		at.fail(kind+" type "+quote(word)+" is unknown", cmp.Or(toolboxTypeHint(word), Suggest(word, all), listHint("there are ", all)))
	}
	return i, i >= 0
}

// toolboxFieldHint returns the hint for a field that Toolbox has and this package
// does not support, or "".
func toolboxFieldHint(name string) string {
	if name == "useClientOAuth" {
		return "tokens of callers are never passed to a source: leave it out, give the source its own account, and list the auth services that a tool requires in authRequired"
	}
	return ""
}

// requireFields reports required fields that are missing.
func (it docItem) requireFields(names ...string) {
	for _, name := range names {
		if _, ok := it.child(name); !ok {
			it.missing(name).fail("is missing", "")
		}
	}
}

// scalarTextField reads a text that is not empty. Like Toolbox it reads a number or
// bool as the text it is written as.
func scalarTextField(to *string) func(value) {
	return func(v value) {
		switch text, ok := v.scalarText(); {
		case ok && text == "":
			v.fail("must not be empty", "")
		case ok:
			*to = text
		}
	}
}

// scalarText returns the text of any scalar except null.
func (v value) scalarText() (string, bool) {
	switch v.node.Tag {
	case "!!int", "!!float", "!!bool":
		if v.node.Kind == yaml.ScalarNode {
			return v.node.Value, true
		}
	}
	return v.text()
}

// passwordField reads a secret that may be in clear text.
func passwordField(to *Secret) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.ScalarNode || v.isNull() {
			v.failRedacted("must be text", "for example ${PASSWORD}")
			return
		}
		if text, ok := v.scalarText(); ok {
			*to = Secret(text)
		}
	}
}

// textMap reads a mapping of names to scalars.
func textMap(to *map[string]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping of names to texts", "for example {sslmode: require}")
			return
		}
		*to = map[string]string{}
		for key, val := range v.pairs() {
			if text, ok := val.scalarText(); ok {
				(*to)[key.node.Value] = text
			}
		}
	}
}

// portField reads a port number, which may be quoted.
func portField(to *int) func(value) {
	return func(v value) {
		if v.node.Tag == "!!str" && strings.Trim(v.node.Value, "0123456789") == "" {
			plain := *v.node
			plain.Tag, v.node = "!!int", &plain
		}
		if n, ok := v.integer(1, 65535, "a port from 1 to 65535"); ok {
			*to = int(n)
		}
	}
}

// ipTypeField reads which address of a Cloud SQL instance to dial, in any case.
func ipTypeField(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		switch text = strings.ToLower(text); text {
		case "public", "private", "psc":
			*to = text
		default:
			v.failType("public, private or psc", "")
		}
	}
}

// databaseField reads the path of a SQLite file, relative to the document, or
// :memory:. It rejects a URI: read as a path it would create another, empty file.
func databaseField(to *string) func(value) {
	return func(v value) {
		var name string
		scalarTextField(&name)(v)
		switch {
		case strings.HasPrefix(name, "file:"):
			v.fail("is a SQLite URI, which is not supported", "write the path of the file, or :memory:; readOnly: true opens it for reading only")
		case name != "" && name != ":memory:":
			name = v.relativePath(name)
		}
		*to = name
	}
}

// maxResponseBytes is the largest value of the field maxResponseBytes.
const maxResponseBytes = 256 << 20
