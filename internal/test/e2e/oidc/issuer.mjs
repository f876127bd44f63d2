// An OpenID Connect issuer on loopback: oidc-provider with two clients, which get JWTs by
// client_credentials for any resource. Other clients register, for people who log in with the header
// X-User and agree to everything. POST /rotate replaces its key. It prints its URL as JSON.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const groups = { "finance-job": ["staff", "finance"], "guest-job": ["guests"], ann: ["finance"], bob: ["finance"] };

// interact logs in the person of the header, and agrees to what a client asks for.
async function interact(provider, request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId: request.headers["x-user"] } });
  }
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope("openid offline_access rolecall");
  grant.addResourceScope(params.resource, "rolecall");
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
}

function newProvider(url) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const provider = new Provider(url, {
    clients: Object.keys(groups).map((id) => ({
      client_id: id, client_secret: "secret-of-" + id, grant_types: ["client_credentials"], redirect_uris: [], response_types: [],
    })),
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" }] },
    scopes: ["rolecall"],
    extraTokenClaims: (_, token) => ({ groups: groups[token.accountId ?? token.clientId] }),
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, interaction) => "/interaction/" + interaction.uid },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope: "rolecall", audience: "rolecall", accessTokenFormat: "jwt", accessTokenTTL: 3600, jwt: { sign: { alg: "RS256" } } }),
      },
    },
  });
  const serveProvider = provider.callback();
  return (request, response) => {
    if (!request.url.startsWith("/interaction/")) return serveProvider(request, response);
    return interact(provider, request, response).catch((error) => response.writeHead(500).end(String(error)));
  };
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
