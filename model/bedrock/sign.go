package bedrock

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/rolecall/rolecall/model/provider"
)

// newSigner returns a function that signs requests with Signature Version 4. It is safe
// for concurrent use.
func newSigner(c provider.Config) func(r *http.Request, bodyHash string) error {
	signer := v4.NewSigner()
	credentials := aws.Credentials{AccessKeyID: c.Credentials.AccessKeyID, SecretAccessKey: c.Credentials.SecretKey, SessionToken: c.Credentials.SessionToken}
	return func(r *http.Request, bodyHash string) error {
		return signer.SignHTTP(r.Context(), credentials, r, bodyHash, "bedrock", c.Region, time.Now())
	}
}
