'use strict';

// Draws secrets of many kinds, and texts of the sort where agents meet them. The benchmark of the cleaner measures with them; another seed
// gives other secrets, names and neighbours.

/**
 * Letters by the sign that stands for them in a template: `ghp_{36w}` is 36 letters or digits behind `ghp_`.
 *
 * @type {Record<string, string>}
 */
const ALPHABETS = {
  a: 'abcdefghijklmnopqrstuvwxyz',
  A: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
  d: '0123456789',
  h: '0123456789abcdef',
  H: '0123456789ABCDEF',
  l: 'abcdefghijklmnopqrstuvwxyz0123456789',
  U: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789',
  B: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  c: 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L',
  b: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  s: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-',
  w: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
  x: 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789',
};
const UUID = '{8h}-{4h}-4{3h}-a{3h}-{12h}';

/** Kinds that are told by themselves: a name, and a template. The formats are those that the providers document. */
const TOLD_BY_THEMSELVES = `
1Password secret key|A3-{6U}-{11U}-{5U}-{5U}-{5U}
1Password service account|ops_eyJ{300b}=
Adobe client secret|p8e-{32l}
age|AGE-SECRET-KEY-1{58c}
Aikido CI|AIK_CI_{32w}
Airtable|pat{14w}.{64h}
Asaas|$aact_prod_{60w}
Anthropic|sk-ant-api03-{93s}AA
Anthropic admin|sk-ant-admin01-{93s}AA
Anthropic OAuth|sk-ant-oat01-{93s}AA
Apify|apify_api_{36w}
Artifactory|AKCp{69w}
Artifactory reference token|cmVmd{59w}
Atlassian|ATATT3{186s}={8H}
AWS access key|AKIA{16B}
AWS temporary key|ASIA{16B}
AWS Bedrock|ABSK{110b}=
Azure client secret|{3w}8Q~{34w}
Bitbucket app password|ATBB{32w}
Bitbucket Data Center|BBDC-{44b}
Brave Search|BSA{28w}
Brevo|xkeysib-{64h}-{16w}
Buildkite agent|bkua_{40l}
Canva|cnvca{51s}
Cartesia|sk_car_{20w}
Cerebras|csk-{48l}
CircleCI personal|CCIPAT_{22w}_{40h}
ClickHouse Cloud|4b1d{38w}
Clojars|CLOJARS_{60l}
Cloudflare origin CA|v1.0-{24h}-{146h}
Cloudflare user token|cfut_{40w}{8h}
Cloudsmith|csa_{30h}{6w}
CockroachDB|CCDB1_{22w}_{40w}
ConfigCat|configcat-sdk-1/{22s}/{22s}
crates.io|cio{32w}
Databricks|dapi{32h}
DataStax|AstraCS:{24w}:{64h}
Deno Deploy|ddp_{36w}
Devin|apk_{88b}
DigitalOcean|dop_v1_{64h}
DigitalOcean OAuth|doo_v1_{64h}
Discord bot|MTA{21w}.{6s}.{38s}
Docker Hub|dckr_pat_{27s}
Docker Hub organisation|dckr_oat_{32s}
Docker Swarm join|SWMTKN-1-{50l}-{25l}
Doppler|dp.pt.{43w}
Doppler service|dp.st.dev.{43w}
Duffel|duffel_live_{43s}
Dynatrace|dt0c01.{24U}.{64U}
E2B|e2b_{40h}
EasyPost|EZAK{54w}
Elastic Cloud|essu_{80w}==
ElevenLabs|sk_{48h}
Exoscale|EXO{26w}
Figma|figd_{40s}
Firecrawl|fc-{32h}
Fireworks|fw_{24w}
Flutterwave|FLWSECK_TEST-{32h}-X
Frame.io|fio-u-{64s}
GitHub personal|ghp_{36w}
GitHub OAuth|gho_{36w}
GitHub user to server|ghu_{36w}
GitHub server to server|ghs_{36w}
GitHub refresh|ghr_{36w}
GitHub fine-grained|github_pat_{22w}_{59w}
GitLab personal|glpat-{20s}
GitLab routable|glpat-{27w}.01.{9l}
GitLab deploy|gldt-{20s}
GitLab runner|glrt-{20s}
GitLab trigger|glptt-{40h}
GitLab job|glcbt-64_{20w}
GitLab feed|glft-{20s}
GitLab OAuth secret|gloas-{64h}
GitLab agent|glagent-{50w}
Google API key|AIza{35s}
Google client secret|GOCSPX-{28s}
Google access token|ya29.{120s}
Grafana service account|glsa_{32w}_{8h}
Grafana Cloud|glc_{80b}=
Groq|gsk_{52w}
Harness|pat.{22w}.{24h}.{20w}
Heroku|HRKU-AA{58s}
HubSpot|pat-na1-${UUID}
Hugging Face|hf_{34w}
Hugging Face organisation|api_org_{34w}
Infracost|ico-{32w}
Ionic|ion_{42w}
Jina|jina_{60s}
Labelbox|lbx_{42w}A
LangSmith personal|lsv2_pt_{32h}_{10h}
LangSmith service|lsv2_sk_{32h}_{10h}
Langfuse|sk-lf-${UUID}
Lichess|lip_{20w}
Linear|lin_api_{40w}
LlamaCloud|llx-{48w}
Mailchimp|{32h}-us12
MailerSend|mlsn.{64h}
Mailgun|key-{32h}
MaxMind|{6w}_{29w}_mmk
MongoDB Atlas|mdb_sa_sk_{40s}
Neon|napi_{64l}
Netlify|nfp_{36w}
New Relic user|NRAK-{27U}
New Relic insert|NRII-{32s}
Notion|ntn_{11d}{35w}
npm|npm_{36w}
NVIDIA|nvapi-{64s}
Nylas|nyk_{67w}
Octopus Deploy|API-{26U}
OneSignal|os_v2_app_{103a}
OpenAI|sk-{20w}T3BlbkFJ{20w}
OpenAI project|sk-proj-{74s}T3BlbkFJ{74s}
OpenAI service account|sk-svcacct-{58s}T3BlbkFJ{58s}
OpenRouter|sk-or-v1-{64h}
OpenShift|sha256~{43s}
Paddle|pdl_live_apikey_{26l}_{22w}_{3w}
Perplexity|pplx-{48w}
Pinecone|pcsk_{6w}_{63w}
PlanetScale token|pscale_tkn_{43s}
PlanetScale password|pscale_pw_{43s}
PostHog|phx_{43w}
Postman|PMAK-{24h}-{34h}
Prefect|pnu_{36w}
Pulumi|pul-{40h}
PyPI|pypi-AgEIcHlwaS5vcmc{150s}
Ramp|ramp_sec_{48w}
Razorpay|rzp_live_{14w}
ReadMe|rdme_{70l}
Render|rnd_{28w}
Replicate|r8_{37w}
Resend|re_{8x}_{24x}
RubyGems|rubygems_{48h}
RunPod|rpa_{40U}{6w}
Scalingo|tk-us-{48s}
SendGrid|SG.{22s}.{43s}
Sentry user|sntryu_{64h}
Shippo|shippo_live_{40h}
Shopify|shpat_{32h}
Shopify private app|shppa_{32h}
Shopify shared secret|shpss_{32h}
Slack bot|xoxb-{12d}-{12d}-{24w}
Slack user|xoxp-{12d}-{12d}-{12d}-{32h}
Slack app|xapp-1-A{10U}-{13d}-{64h}
Slack workspace|xoxa-2-{40w}
Sourcegraph|sgp_{40h}
Square|sq0atp-{22s}
Square access token|EAAA{60s}
Stripe|sk_live_{24w}
Stripe long|sk_live_{99w}
Stripe restricted|rk_test_{24w}
Stripe webhook|whsec_{32w}
Supabase|sbp_{40h}
Supabase secret key|sb_secret_{31s}
Tailscale|tskey-auth-k{12w}CNTRL-{32w}
Tailscale API|tskey-api-k{12w}CNTRL-{32w}
Tavily|tvly-{32w}
Telegram|{10d}:AA{33s}
Terraform Cloud|{14w}.atlasv1.{67w}
Together|tgp_v1_{43s}
Twilio|SK{32h}
Typeform|tfp_{59s}
Unkey|unkey_{24w}
Vault service|hvs.{95s}
Vault batch|hvb.{140s}
Vercel|vcp_{56w}
Vercel AI gateway|vck_{56w}
WakaTime|waka_{36h}
Weights & Biases|wandb_v1_{77w}
xAI|xai-{80w}
Xendit|xnd_production_{64w}
Zuplo|zpka_{32l}_{8h}
JSON Web Token|eyJhbGciOiJIUzI1NiJ9.eyJ{60s}.{43s}
Slack webhook|https://hooks.slack.com/services/T{9U}/B{9U}/{24w}
Discord webhook|https://discord.com/api/webhooks/{18d}/{68s}
URL of PostgreSQL|postgres://app:{12w}@db.internal:5432/app
URL of MongoDB|mongodb+srv://app:{12w}@cluster0.mongodb.net/app
URL with a password|https://deploy:{16w}@git.internal/app.git
`;

/** Kinds that their name tells: the variable, the words of a sentence, and a template. */
const TOLD_BY_NAMES = `
DATADOG_API_KEY|Datadog API key|{32h}
DD_APP_KEY|Datadog app key|{40h}
ALGOLIA_API_KEY|Algolia API key|{32h}
AWS_SECRET_ACCESS_KEY|AWS secret access key|{40b}
AZURE_OPENAI_API_KEY|Azure API key|{32h}
BITBUCKET_CLIENT_SECRET|client secret|{64w}
BROWSERSTACK_ACCESS_KEY|BrowserStack access key|{20w}
CIRCLECI_TOKEN|CircleCI token|{40h}
CLOUDFLARE_API_TOKEN|Cloudflare token|{40s}
CODECOV_TOKEN|Codecov token|${UUID}
COHERE_API_KEY|Cohere API key|{40w}
CONFLUENT_API_SECRET|Confluent secret|{64w}
DEEPGRAM_API_KEY|Deepgram API key|{40h}
DEEPSEEK_API_KEY|DeepSeek API key|sk-{32h}
FASTLY_API_TOKEN|Fastly token|{32s}
GITEA_TOKEN|Gitea token|{40h}
HEROKU_API_KEY|Heroku API key|${UUID}
HONEYCOMB_API_KEY|Honeycomb API key|{22w}
KAGGLE_KEY|Kaggle API key|{32h}
LAUNCHDARKLY_ACCESS_TOKEN|LaunchDarkly access token|api-${UUID}
MAPBOX_SECRET_TOKEN|Mapbox token|sk.{60w}.{22w}
MISTRAL_API_KEY|Mistral API key|{32w}
OKTA_API_TOKEN|Okta API token|00{40s}
OPSGENIE_API_KEY|Opsgenie API key|${UUID}
PAGERDUTY_TOKEN|PagerDuty token|u+{18w}
SNYK_TOKEN|Snyk token|${UUID}
SONAR_TOKEN|Sonar token|squ_{40h}
TWILIO_AUTH_TOKEN|Twilio auth token|{32h}
TWITTER_API_SECRET|Twitter API secret|{50w}
VIRUSTOTAL_API_KEY|VirusTotal API key|{64h}
DB_PASSWORD|database password|{6a}{3d}
ADMIN_PASSWORD|admin password|{4A}{5a}{2d}
SECRET_KEY_BASE|secret key|{128h}
SESSION_SECRET|session secret|{32b}
JWT_SECRET|signing key|{43s}
`;

/** @param {string} table */
const rowsOf = (table) =>
  table
    .trim()
    .split('\n')
    .map((line) => line.split('|'));

/**
 * Numbers from 0 to 1 that a seed decides (mulberry32).
 *
 * @param {number} seed
 */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Texts around a secret, by where agents meet them: `name` is the name of a variable, `words` what a sentence calls the secret.
 *
 * @type {Record<string, (pick: (...choices: string[]) => string, name: string, words: string, secret: string) => string>}
 */
const SURROUNDINGS = {
  'environment dumps': (pick, name, _, secret) =>
    `${pick('LANG=C.UTF-8', 'HOME=/root', 'TERM=xterm')}\n${name}=${secret}\n${pick('SHLVL=1', 'PWD=/srv', 'EDITOR=vi')}`,
  'shell history': (pick, name, _, secret) =>
    `${pick('cd /srv', 'git pull', 'ls -la')}\n${pick('export ', '', 'env ')}${name}=${pick(secret, `"${secret}"`, `'${secret}'`)}${pick('', ' make', ' npm run start')}\n${pick('make', 'exit')}`,
  'JSON within JSON': (pick, name, _, secret) =>
    JSON.stringify({
      type: pick('tool_result', 'message'),
      body: JSON.stringify({ id: 7, [pick(name, name.toLowerCase())]: secret, ok: true }),
    }),
  diffs: (pick, name, _, secret) =>
    `@@ -1,3 +1,3 @@\n region: eu\n-${name}: ${pick('changeme', 'none')}\n+${name}: ${pick(secret, `"${secret}"`)}\n replicas: 2`,
  'HTTP headers': (pick, name, _, secret) =>
    `${pick('GET', 'POST')} /v1 HTTP/1.1\r\nHost: api.example.com\r\nX-${name.replaceAll('_', '-')}: ${secret}\r\nAccept: */*`,
  YAML: (pick, name, _, secret) =>
    `service:\n  ${pick(name, name.toLowerCase())}: ${pick(secret, `"${secret}"`)}\n  replicas: 2`,
  logs: (pick, name, _, secret) =>
    `2026-03-0${pick('1', '2', '3')}T12:00:00Z ${pick('INFO', 'DEBUG')} started ${name.toLowerCase()}=${secret}${pick(' in 12ms', '', ', retrying')}`,
  prose: (pick, _, words, secret) =>
    `${pick('I looked it up.', 'Here it is.')} The ${words} is ${pick(secret, `\`${secret}\``)}${pick('.', ', please rotate it.', '\nThanks!')}`,
};

/**
 * Plants a secret of each kind in each of the surroundings.
 *
 * @param {number} seed
 * @returns {Array<{ kind: string, where: string, text: string, secret: string }>}
 */
function plantedSecrets(seed) {
  const next = random(seed);
  const pick = (/** @type {string[]} */ ...choices) => choices[Math.floor(next() * choices.length)];
  const draw = (/** @type {string} */ template) =>
    template.replace(/\{(\d+)(\w)\}/g, (_, count, sign) =>
      Array.from({ length: Number(count) }, () => pick(...ALPHABETS[sign])).join(''),
    );
  const kinds = [
    ...rowsOf(TOLD_BY_THEMSELVES).map(([kind, template]) => [kind, '', '', template]),
    ...rowsOf(TOLD_BY_NAMES).map(([name, words, template]) => [words, name, words, template]),
  ];
  return kinds.flatMap(([kind, name, words, template]) =>
    Object.entries(SURROUNDINGS).map(([where, make]) => {
      const secret = draw(template);
      const plain = pick('SERVICE_REF', 'UPSTREAM', 'THING_ONE');
      return {
        kind,
        where,
        text: make(pick, name || plain, words || pick('value', 'other one'), secret),
        secret,
      };
    }),
  );
}

/**
 * Returns whether anything of a secret is left: eight of its letters in a row, or all of it.
 *
 * @param {string} cleaned
 * @param {string} secret
 */
function isLeft(cleaned, secret) {
  const part = Math.min(8, secret.length);
  // The host and the scheme of a URL are no secrets.
  const core = secret.replace(/^.*:\/\/[^:]*:([^@]+)@.*$/, '$1').replace(/^https?:\/\/.*\//, '');
  for (let at = 0; at + part <= core.length; at++)
    if (cleaned.includes(core.slice(at, at + part))) return true;
  return core.length < part && cleaned.includes(core);
}

module.exports = { isLeft, plantedSecrets };
