// SPDX-License-Identifier: Apache-2.0
// An identity provider on loopback: oidc-provider, with its own pages for people, and with the people of a file. argv[2] names the file of
// settings: {port, people, device_s}. People may change at any time; the rest is read once. Prints its address when it serves.
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

import { Provider } from 'oidc-provider'

const settings = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const KINDS = { RS256: ['rsa', { modulusLength: 2048 }], ES256: ['ec', { namedCurve: 'P-256' }], EdDSA: ['ed25519', {}] }

// Made anew at each start: that is how keys are rotated here.
const keys = Object.entries(KINDS).map(([alg, [kind, options]]) => {
  const key = generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' })
  return { ...key, use: 'sig', kid: `${alg}-${Date.now()}`, ...(alg === 'RS256' ? {} : { alg }) }
})

const device = 'urn:ietf:params:oauth:grant-type:device_code'
const client = (id, alg, grants = [device]) => ({
  client_id: id, token_endpoint_auth_method: 'none', application_type: 'native', grant_types: grants, response_types: [],
  redirect_uris: [], id_token_signed_response_alg: alg,
})

const server = createServer()
server.listen(settings.port, '127.0.0.1', () => {
  const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
    clients: [
      client('gpuctl', 'RS256'), client('renewing', 'RS256', [device, 'refresh_token']), client('other', 'RS256'),
      client('ps', 'PS256'), client('es', 'ES256'), client('ed', 'EdDSA'),
    ],
    jwks: { keys },
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA'] },
    claims: { profile: ['preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'offline_access'],
    conformIdTokenClaims: false,
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
    ttl: { DeviceCode: settings.device_s, IdToken: 3600 },
    findAccount: (ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...JSON.parse(readFileSync(settings.people, 'utf8'))[id] }),
    }),
  })
  provider.use(async (ctx, next) => {
    await next()
    if (ctx.oidc?.route === 'device_authorization' && ctx.status === 200) ctx.body.interval = 1
  })
  server.on('request', provider.callback())
  console.log(provider.issuer)
})
