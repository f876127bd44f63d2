// An OpenID Connect issuer on loopback: oidc-provider with two clients, which get JWTs by
// client_credentials for any resource. POST /rotate replaces its key. It prints its URL as JSON.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const groups = { "finance-job": ["staff", "finance"], "guest-job": ["guests"] };

function newProvider(url) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return new Provider(url, {
    clients: Object.keys(groups).map((id) => ({
      client_id: id, client_secret: "secret-of-" + id, grant_types: ["client_credentials"], redirect_uris: [], response_types: [],
    })),
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" }] },
    scopes: ["rolecall"],
    extraTokenClaims: (_, token) => ({ groups: groups[token.clientId] }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope: "rolecall", audience: "rolecall", accessTokenFormat: "jwt", accessTokenTTL: 3600, jwt: { sign: { alg: "RS256" } } }),
      },
    },
  }).callback();
}

let serve;
const server = createServer((request, response) => {
  if (request.method === "POST" && request.url === "/rotate") {
    serve = newProvider(url);
    response.end();
    return;
  }
  serve(request, response);
});
let url;
server.listen(0, "127.0.0.1", () => {
  url = `http://127.0.0.1:${server.address().port}`;
  serve = newProvider(url);
  console.log(JSON.stringify({ url }));
});
