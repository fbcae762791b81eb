'use strict';

// Secrets in the texts where agents meet them, beside those that secret-kinds.js draws. All are made up; keys are put together here, so
// that nobody takes them for real ones.

/**
 * @param {string} alphabet
 * @param {number} count
 */
const some = (alphabet, count) =>
  Array.from({ length: count }, (_, index) => alphabet[index % alphabet.length]).join('');
const mixed = (/** @type {number} */ count) => some('aB3dE5fG7hJ', count);
const hex = (/** @type {number} */ count) => some('0a1b2c3d4e5f', count);
const base64 = (/** @type {string} */ text) => Buffer.from(text).toString('base64');

const LINES_OF_KEY = [mixed(64), some('Qz7+kL9/mN', 64), `${mixed(20)}==`];
/** @param {string} name */
const pem = (name) => [`-----BEGIN ${name}-----`, ...LINES_OF_KEY, `-----END ${name}-----`].join('\n');

/**
 * Secrets of other forms than secret-kinds.js draws, and personal data: the kind, and what must not be left.
 *
 * @type {Array<[kind: string, secret: string]>}
 */
const KEYS = [
  ['OpenAI project', `sk-proj-${mixed(40)}_${mixed(30)}-x`],
  ['OpenAI service account', `sk-svcacct-${mixed(60)}`],
  ['Anthropic', `sk-ant-api03-${mixed(80)}-${mixed(8)}AA`],
  ['LangSmith old', `ls__${hex(32)}`],
  ['Tavily development', `tvly-dev-${mixed(32)}`],
  ['PostHog project', `phc_${mixed(43)}`],
  ['Figma, short', `figd_${mixed(24)}`],
  ['Mailgun with other letters', 'key-3ax6xnjp29jd6fds4gc373sgvjxteol0'],
  ['Mailgun domain', `${hex(32)}-${hex(8)}-${hex(8)}`],
  ['Google access token', `ya29.${mixed(60)}`],
  ['Azure client secret', `aB38Q~${mixed(34)}`],
  ['Slack bot', `xoxb-123456789012-${mixed(24)}`],
  ['Slack app', `xapp-1-A0-${mixed(40)}`],
  ['PyPI', `pypi-AgEIcHlwaS5vcmc${mixed(60)}`],
  ['Hugging Face', `hf_${some('aBcDeF', 34)}`],
  ['Vercel', `vercel_blob_rw_${mixed(40)}`],
  ['Square', `sq0csp-${mixed(43)}`],
  ['Grafana Cloud', `glc_${mixed(60)}`],
  ['Sentry token', `sntrys_${mixed(60)}`],
  ['Notion', `ntn_${mixed(46)}`],
  ['Atlassian', `ATATT3${mixed(60)}=${hex(8)}`],
  ['1Password', `ops_eyJ${mixed(80)}`],
  ['JSON Web Token', `eyJ${mixed(30)}.eyJ${mixed(60)}.${mixed(43)}`],
  ['Discord webhook', `https://discord.com/api/webhooks/123456789/${mixed(60)}`],
  ['payment card', '4111 1111 1111 1111'],
  ['payment card in one piece', '5555555555554444'],
  ['IBAN in groups', 'DE89 3704 0044 0532 0130 00'],
  ['IBAN in one piece', 'GB29NWBK60161331926819'],
  ['US social security number', '536-22-8725'],
  ['Swiss social security number', '756.9217.0769.85'],
  ['telephone number of Germany', '+49 30 901820'],
  ['telephone number of the United Kingdom', '+44 20 7946 0958'],
  ['telephone number of France', '+33 1 23 45 67 89'],
  ['telephone number with parentheses', '+49 (30) 901820'],
  ['telephone number of Switzerland', '+41-44-668-18-00'],
  ['e-mail address', "bob.o'brien@example.com"],
  ['e-mail address with another letter', 'josé.garcía@example.com'],
  ['IPv6 address', '2001:db8::ff00:42:8329'],
  ['home of Linux', '/home/alice/work/app'],
  ['home of another letter', '/home/josé/work'],
  ['home of Windows', 'c:\\Users\\bob\\notes.txt'],
  ["Claude Code's home of Linux", '-home-alice-project'],
  ["Claude Code's home of macOS", '-Users-bob-src-app'],
  ['URL of PostgreSQL', 'postgres://app:hunter2pw@db.internal:5432/app'],
];

/**
 * Texts around a secret that is told by itself: `keeps` is what must be left of them.
 *
 * @type {Array<[name: string, make: (secret: string) => string, keeps: string[]]>}
 */
const SURROUNDINGS = [
  [
    'prose',
    (secret) => `The build used ${secret} and then it failed.`,
    ['The build used ', ' and then it failed.'],
  ],
  [
    'an env dump',
    (secret) => `LANG=C\nSOME_THING=${secret}\nSHELL=/bin/bash`,
    ['LANG=C\nSOME_THING=', '\nSHELL=/bin/bash'],
  ],
  [
    'a shell history',
    (secret) => `cd /srv\nmytool run "${secret}"\nls -l`,
    ['cd /srv\nmytool run "', '"\nls -l'],
  ],
  [
    'JSON in JSON',
    (secret) => JSON.stringify({ body: JSON.stringify({ first: 1, thing: secret, last: 'x' }) }),
    ['{"body":"{\\"first\\":1,\\"thing\\":\\"', '\\",\\"last\\":\\"x\\"}"}'],
  ],
  [
    'a diff',
    (secret) => `@@ -1,2 +1,2 @@\n-thing: none\n+thing: ${secret}\n other: 1`,
    ['-thing: none\n+thing: ', '\n other: 1'],
  ],
  [
    'HTTP headers',
    (secret) => `GET /x HTTP/1.1\r\nHost: example.com\r\nX-Thing: ${secret}\r\nAccept: */*`,
    ['Host: example.com\r\nX-Thing: ', '\r\nAccept: */*'],
  ],
  [
    'YAML',
    (secret) => `service:\n  thing: ${secret}\n  replicas: 2`,
    ['service:\n  thing: ', '\n  replicas: 2'],
  ],
  [
    'a log',
    (secret) => `2024-05-01T12:00:00Z INFO worker started thing=${secret} in 12ms`,
    ['2024-05-01T12:00:00Z INFO worker started thing=', ' in 12ms'],
  ],
];

const PASSWORD = 'hunter2';
const TOKEN = mixed(32);
const BASIC = base64('alice:hunter2pw');

/**
 * A text with secrets, which are what is put into the template; all else must be left.
 *
 * @param {TemplateStringsArray} around
 * @param {string[]} secrets
 * @returns {[text: string, secrets: string[], keeps: string[]]}
 */
function planted(around, ...secrets) {
  return [String.raw({ raw: around }, ...secrets), secrets, around.filter((text) => text !== '')];
}

/**
 * Secrets that only what is around them tells: the text, what must not be left, and what must be.
 *
 * @type {Array<[kind: string, text: string, secrets: string | string[], keeps?: string[]]>}
 */
const TOLD_BY_NAMES = [
  // Variables of the environment.
  ['DB_PASS', ...planted`DB_PASS=${PASSWORD}\nDB_HOST=db`],
  ['OPENAI_KEY', ...planted`OPENAI_KEY=${TOKEN}\nLANG=C`],
  ['SECRET_KEY_BASE', `SECRET_KEY_BASE=${hex(128)}`, hex(12)],
  ['REDIS_AUTH', ...planted`export REDIS_AUTH=${PASSWORD}; ls`],
  [
    'a password with signs',
    `export DB_PASSWORD=p@ss,w0rd;x)y\nexport LANG=C`,
    ['p@ss', 'w0rd', ';x)y'],
    ['\nexport LANG=C'],
  ],
  [
    'a password with spaces',
    `MAIL_PASSWORD="correct horse battery"\nX=1`,
    ['correct', 'horse', 'battery'],
    ['\nX=1'],
  ],
  ['SMTP_PW', `SMTP_PW='${PASSWORD}' node app.js`, PASSWORD, [' node app.js']],
  ['another key', ...planted`ACME_KEY=${TOKEN}`],
  ['DB_PASSWORD_PROD', ...planted`DB_PASSWORD_PROD=${PASSWORD}`],
  ['STRIPE_SECRET2', ...planted`STRIPE_SECRET2=${PASSWORD}`],
  ['a word', ...planted`token=${'abc'} ok`],
  ['the value that a variable falls back to', ...planted`url=\${DB_PASSWORD:-${PASSWORD}}/app`],
  ['PowerShell', `$env:API_TOKEN = "${PASSWORD}"`, PASSWORD],
  ['a Dockerfile', ...planted`FROM node\nENV DB_PASSWORD ${PASSWORD}\nRUN make`],
  ['setx', ...planted`setx API_TOKEN ${PASSWORD}`],
  [
    'env in JSON',
    JSON.stringify({ out: `DB_PASS=${PASSWORD}\nHOME=/root\n` }),
    PASSWORD,
    ['\\nHOME=/root\\n"}'],
  ],
  [
    'env in JSON in JSON',
    JSON.stringify({ a: JSON.stringify({ out: `DB_PASS=${PASSWORD}\nHOME=/root` }) }),
    PASSWORD,
    ['HOME=/root'],
  ],
  [
    'a diff of env',
    `-DB_PASS=old-${PASSWORD}\n+DB_PASS=${PASSWORD}\n LANG=C`,
    PASSWORD,
    ['\n+DB_PASS=', '\n LANG=C'],
  ],
  // Programs.
  ['os.environ', ...planted`os.environ["DB_PASSWORD"] = "${PASSWORD}"\nrun()`],
  ['process.env', ...planted`process.env['API_KEY'] = '${PASSWORD}';`],
  ['process.env with a point', `process.env.DB_PASS = '${PASSWORD}';`, PASSWORD],
  ['setdefault', ...planted`os.environ.setdefault("DB_PASSWORD", "${PASSWORD}")`],
  ['what getenv falls back to', ...planted`pw = os.getenv("DB_PASSWORD", "${PASSWORD}")`],
  [
    'what process.env falls back to',
    `const dbPassword = process.env.DB_PASSWORD || '${PASSWORD}';`,
    PASSWORD,
  ],
  ['a setter of headers', ...planted`headers.set('X-Api-Key', '${PASSWORD}');`],
  ['a name with a type', `password: str = "${PASSWORD}"`, PASSWORD],
  [
    'a constant with a type',
    `const ADMIN_PASSWORD: &str = "${PASSWORD}";`,
    PASSWORD,
    ['const ADMIN_PASSWORD: ', ';'],
  ],
  ['a call around a string', `db_password=SecretStr("${PASSWORD}")`, PASSWORD],
  ['an arrow of Ruby', `{ :password => "${PASSWORD}", :user => "bob" }`, PASSWORD, [':user => "bob" }']],
  ['an array of PHP', ...planted`['db_password' => '${PASSWORD}', 'host' => 'db']`],
  ["PHP's define", ...planted`define('DB_PASSWORD', '${PASSWORD}');`],
  ['Go', `apiToken := "${PASSWORD}"`, PASSWORD],
  [
    'a property of JavaScript',
    `login({ user: 'bob', dbPassword: '${PASSWORD}' })`,
    PASSWORD,
    ["login({ user: 'bob', dbPassword: ", ' })'],
  ],
  // Data.
  ['JSON', ...planted`{"user": "bob", "password": "${PASSWORD}", "port": 1}`],
  [
    'a list in JSON',
    `{"passwords": ["${PASSWORD}", "second-${PASSWORD}"], "port": 1}`,
    PASSWORD,
    ['"], "port": 1}'],
  ],
  ['a list of a singular name in JSON', ...planted`{"password": ["${PASSWORD}"], "port": 1}`],
  ['an object in JSON', ...planted`{"secret": {"value": "${PASSWORD}"}, "port": 1}`],
  ['a number in JSON', '{"token": 123456789, "port": 1}', '123456789', [', "port": 1}']],
  ['a name and a value in JSON', ...planted`[{"name": "X-Api-Key", "value": "${PASSWORD}"}]`],
  [
    'JSON in JSON',
    JSON.stringify({ a: JSON.stringify({ apiKey: PASSWORD, b: 1 }) }),
    PASSWORD,
    ['\\"b\\":1}"}'],
  ],
  ['YAML', ...planted`db:\n  user: bob\n  db_password: ${PASSWORD}\n  port: 1`],
  [
    'YAML with spaces',
    `db:\n  db_password: correct horse battery\n  port: 1`,
    ['correct', 'horse', 'battery'],
    ['\n  port: 1'],
  ],
  [
    'names and values of YAML',
    ...planted`env:\n  - name: DB_PASSWORD\n    value: ${PASSWORD}\n  - name: PORT\n    value: 80`,
  ],
  ['TOML', `[db]\npassword = "${PASSWORD}"\nport = 1`, PASSWORD, ['\nport = 1']],
  ['INI', ...planted`[db]\ndbpassword=${PASSWORD}\nport=1`],
  ['XML', ...planted`<db><user>bob</user><password>${PASSWORD}</password></db>`],
  ['CDATA of XML', ...planted`<secret><![CDATA[${PASSWORD}]]></secret>`],
  ['attributes of XML', ...planted`<add key="DbPassword" value="${PASSWORD}" />`],
  ['an element with a name', ...planted`<string name="api_key">${PASSWORD}</string>`],
  ['a query', ...planted`GET /x?token=${TOKEN}&page=2 HTTP/1.1`],
  ['a form', ...planted`user=bob&password=${PASSWORD}&next=home`],
  ['.netrc', ...planted`machine api.example.com login bob password ${PASSWORD}`],
  [
    '.netrc in lines',
    `machine api.example.com\n  login bob\n  password hunters\n`,
    'hunters',
    ['machine api.example.com\n  login bob\n'],
  ],
  ['.pgpass', ...planted`db.example.com:5432:app:bob:${PASSWORD}\n`],
  ['.pgpass with stars', ...planted`*:*:*:bob:${PASSWORD}`],
  ['.npmrc', ...planted`//registry.example.com/:_authToken=${TOKEN}`],
  ['.npmrc with a password', ...planted`_auth=${BASIC}`],
  ["Docker's auth", ...planted`{"auths": {"https://index.docker.io/v1/": {"auth": "${BASIC}"}}}`],
  ['a secret of Kubernetes', ...planted`kind: Secret\ndata:\n  password: ${base64(PASSWORD)}\n`],
  ['a connection string of ADO', ...planted`Server=db;User Id=sa;Password=${PASSWORD};Encrypt=True`],
  [
    'a key of Azure',
    `AccountName=x;AccountKey=${mixed(86)}==;EndpointSuffix=y`,
    mixed(20),
    [';EndpointSuffix=y'],
  ],
  // HTTP.
  ['Authorization with Token', ...planted`GET / HTTP/1.1\r\nAuthorization: Token ${TOKEN}\r\nAccept: */*`],
  ['Authorization alone', ...planted`Authorization: ${TOKEN}\nAccept: */*`],
  ['Authorization with Basic', ...planted`Authorization: Basic ${BASIC}`],
  [
    'Authorization with a short bearer',
    'Authorization: Bearer abc123def456',
    'abc123def456',
    ['Authorization: Bearer'],
  ],
  ['Authorization with ApiKey', ...planted`authorization: ApiKey ${TOKEN}`],
  [
    'Authorization of AWS',
    `Authorization: AWS4-HMAC-SHA256 Credential=${mixed(20)}/20240501/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=${hex(64)}`,
    hex(12),
  ],
  ['Proxy-Authorization', ...planted`Proxy-Authorization: Basic ${BASIC}`],
  ['Authorization in JSON', ...planted`{"headers": {"Authorization": "Token ${TOKEN}", "Accept": "*/*"}}`],
  ['Authorization in curl', ...planted`curl -H 'Authorization: Token ${TOKEN}' https://api.example.com`],
  ['X-Api-Key', ...planted`X-Api-Key: ${TOKEN}\r\nAccept: */*`],
  ['X-Auth-Token in curl', ...planted`curl -H "X-Auth-Token: ${PASSWORD}" https://x.example.com`],
  ['Cookie', ...planted`Cookie: theme=dark; sessionid=${TOKEN}; lang=de\r\nAccept: */*`],
  ['Set-Cookie', ...planted`Set-Cookie: sid=${TOKEN}; Path=/; HttpOnly`],
  ['Set-Cookie of Express', `set-cookie: connect.sid=s%3A${TOKEN}; Path=/`, TOKEN, ['; Path=/']],
  ['Cookie in JSON', ...planted`{"cookie": "PHPSESSID=${hex(26)}; a=b"}`],
  [
    'X-Amz-Signature',
    `https://b.s3.amazonaws.com/k?X-Amz-Date=20240501T000000Z&X-Amz-Signature=${hex(64)}&x=1`,
    hex(12),
    ['?X-Amz-Date=20240501T000000Z&X-Amz-Signature=', '&x=1'],
  ],
  ['X-Amz-Security-Token', `?X-Amz-Security-Token=${mixed(90)}&x=1`, mixed(20), ['&x=1']],
  [
    'a signature of Azure',
    `https://x.blob.core.windows.net/c?sv=2022&sig=${mixed(43)}%3D`,
    mixed(20),
    ['?sv=2022&sig='],
  ],
  ['a password in a URL', ...planted`git clone https://bob:${PASSWORD}@git.example.com/x.git`],
  ['a token in a URL', ...planted`https://${TOKEN}@git.example.com/x.git`],
  ["Sentry's DSN", ...planted`https://${hex(32)}@o1.ingest.sentry.io/2`],
  ['Redis with a password', `redis-cli -u redis://:${PASSWORD}@cache:6379`, PASSWORD],
  // Commands.
  ['curl -u', ...planted`curl -s -u bob:${PASSWORD} https://api.example.com | jq .`],
  ['curl --user', ...planted`curl --user 'bob:${PASSWORD}' https://api.example.com`],
  ['curl -u in one word', ...planted`curl -ubob:${PASSWORD} x`],
  ['curl -b', ...planted`curl -b 'sid=${TOKEN}' x`],
  ['curl over lines', ...planted`curl https://x.example.com \\\n  -u bob:${PASSWORD} \\\n  -o out`],
  ['mysql -p', ...planted`mysql -u root -p${PASSWORD} -h db app < dump.sql`],
  ['mysqldump -p', ...planted`mysqldump -uroot -p'${PASSWORD}' app`],
  ['--password', ...planted`psql-tool --user bob --password ${PASSWORD} --host db`],
  ['--password=', ...planted`tool --password=${PASSWORD} run`],
  ['--token', ...planted`gh-tool --token ${TOKEN} list`],
  ['--api-key', ...planted`tool --api-key "${PASSWORD}" list`],
  ['--client-secret', ...planted`az ad --client-secret ${PASSWORD}`],
  ['-storepass', ...planted`keytool -list -storepass ${PASSWORD} -v`],
  ['arguments in JSON', ...planted`{"argv": ["tool", "--password", "${PASSWORD}", "run"]}`],
  ['sshpass -p', `sshpass -p ${PASSWORD} ssh bob@host.example.com`, PASSWORD, ['sshpass -p ']],
  ['sshpass -p in one word', ...planted`sshpass -p'${PASSWORD}' scp a b`],
  ['redis-cli -a', ...planted`redis-cli -h cache -a ${PASSWORD} ping`],
  ['docker login', ...planted`docker login -u bob -p ${PASSWORD} registry.example.com`],
  ['ldapsearch', ...planted`ldapsearch -D cn=admin -w ${PASSWORD} -b dc=x`],
  ['mongosh', ...planted`mongosh -u root -p ${PASSWORD} db`],
  ['openssl', ...planted`openssl rsa -passin pass:${PASSWORD} -in k`],
  ['sudo', ...planted`echo ${PASSWORD} | sudo -S apt update`],
  ['docker login from echo', ...planted`echo "${PASSWORD}" | docker login -u bob --password-stdin`],
  ['PGPASSWORD', ...planted`PGPASSWORD=${PASSWORD} psql -h db -U app`],
  ['aws configure', ...planted`aws configure set aws_secret_access_key ${mixed(40)}`],
  ['SQL', ...planted`ALTER USER bob WITH PASSWORD '${PASSWORD}';`],
  ["MySQL's users", ...planted`CREATE USER 'bob'@'%' IDENTIFIED BY '${PASSWORD}';`],
  // Sentences and logs.
  ['a sentence', ...planted`The admin password is ${PASSWORD}, do not share it.`],
  ['a sentence with a token', ...planted`Use it; the token is ${TOKEN}.`],
  ['a key in two words', ...planted`API key: ${TOKEN}\nNext line`],
  ['a log', ...planted`2024-05-01 INFO login user=bob password=${PASSWORD} ok=1`],
  ['a log with commas', ...planted`login(user=bob, db_password=${PASSWORD}, port=1)`],
  ['a tool call', `api-key: ${PASSWORD}\nclient_secret: de fg hi`, [PASSWORD, 'de fg hi']],
  // Keys in files.
  ['a private key', `${pem('RSA PRIVATE KEY')}\nnext`, LINES_OF_KEY, ['\nnext']],
  ['a private key of OpenSSH', pem('OPENSSH PRIVATE KEY'), LINES_OF_KEY],
  [
    'a private key that is cut off',
    pem('EC PRIVATE KEY').split('\n').slice(0, 3).join('\n'),
    LINES_OF_KEY.slice(0, 2),
  ],
  [
    'a service account of Google Cloud',
    JSON.stringify({ type: 'service_account', private_key: `${pem('PRIVATE KEY')}\n`, client_id: '1' }),
    LINES_OF_KEY,
    ['{"type":"service_account","private_key":"', '"client_id":"1"}'],
  ],
  ['a private key in a diff', pem('PRIVATE KEY').replace(/^/gm, '+'), LINES_OF_KEY],
  // Paths.
  [
    'a session of Claude Code',
    '~/.claude/projects/-home-alice-project/0a1b.jsonl',
    'alice',
    ['~/.claude/projects/'],
  ],
  ['a session of Claude Code on Windows', 'projects\\C--Users-alice-app\\x.jsonl', 'alice', ['projects\\']],
  ['a path in an encoded URL', 'file?path=%2Fhome%2Falice%2Fx&y=1', 'alice', ['file?path=']],
  ['a path in escaped JSON', '{"path":"\\/home\\/alice\\/x","y":1}', 'alice', ['{"path":"', '","y":1}']],
];

module.exports = { KEYS, SURROUNDINGS, TOLD_BY_NAMES };
