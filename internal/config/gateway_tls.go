package config

import "github.com/rolecall/rolecall/internal/yamldoc"

// TLSFiles names the files of the gateway's certificate, in PEM. The zero TLSFiles is HTTP
// without TLS.
type TLSFiles struct {
	Cert string // certificate, followed by those between it and the root
	Key  string // private key
	Pos  yamldoc.Pos
}

// tlsField reads the files of a certificate. Their contents are read when the gateway starts.
func tlsField(to *TLSFiles) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsMapping() {
			v.AddTypeError("a mapping of cert and key", "for example {cert: gw.pem, key: gw.key}")
			return
		}
		before := v.ErrorCount()
		files := TLSFiles{Pos: v.Pos}
		v.ReadFields(yamldoc.Fields{"cert": pathField(&files.Cert), "key": pathField(&files.Key)})
		requireFields(v, "cert", "key")
		if v.ErrorCount() == before {
			*to = files
		}
	}
}
