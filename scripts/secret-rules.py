"""Writes crates/clean/rules/betterleaks.tsv: the rules of Betterleaks, by which kp-score knows the keys of providers.

Betterleaks (MIT licence) is gitleaks' successor, by the same author. The crate kingfisher-rules carries its configuration unchanged.
Rules that need the provider's name beside the key are left out, because the cleaner knows names by itself.
To take newer rules, set VERSION and run `python3 scripts/secret-rules.py` (Python 3.11 or newer, and Cargo).
"""

import gzip
import json
import os
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

VERSION = '3.0.1'
CRATE = 'kingfisher-rules'
TARGET = Path(__file__).parent.parent / 'crates' / 'clean' / 'rules'

# What Betterleaks puts between a name and its value, and around a secret.
CONNECTION = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
CONNECTION_IN_FLAGS = CONNECTION.replace('{0,3}(?:=|>', '{0,3})(?:=|>', 1)
BEFORE = re.compile(r'^(?:\\b|\(\?:\^\|\[[^\]]+\]\))')
AFTER = re.compile(r'(?:\\b|\(\?:\\\\\?\[\'"\\x60\]\|\[\\s;\]\|\\\\\[nr\]\|\$\)|\(\?:\$?\|?\[\^?[^\]]+\](?:\|\\\\\[nr\])?(?:\|\\z|\|\$)?(?:\|\\b)?\))$')

# Names of things that are no secrets. Betterleaks reports many of them only together with the secret that belongs to them.
NO_SECRET = re.compile(r'(?:-id|-name|-username|-url|-host|-domain|public-key|pub-api-key|client-sdk-key)(?:\.\d)?$')
# Rules for what the cleaner finds by itself: whatever has a telling name, URLs, private keys, web tokens, webhooks.
OWN = re.compile(
    r'^(?:generic-.*|curl-auth-.*|kubernetes-secret-yaml|gcp-application-default-credentials|gcp-service-account|private-key|jwt.*'
    r'|temporal-cloud-api-key.*|mongodb-connection-string|azure-(?:app|service|storage).*|nuget-config-password|sidekiq-sensitive-url'
    r'|freemius-secret-key|slack-webhook-url|microsoft-teams-webhook|aws-secret-access-key|aws-.*-short-lived|ovh-.*|endorlabs-.*'
    r'|authress-.*|azure-ad-client-secret|hashicorp-tf-api-token|maxmind-license-key|openai-api-key|aiven-.*|amplitude-.*|bitly-.*|cloudinary-.*|couchbase-.*|influxdb-.*|hashicorp-tf-password|flyio-.*|canadian-digital-.*)$'
)
# Rules that say too little where the provider's name does not stand in the same text.
VAGUE = re.compile(
    r'^(?:facebook-access-token|salesforce-access-token.*|tableau-.*|midtrans-.*|gitlab-incoming-mail-address-token|.*-(?:site|region))$'
)
# What the key begins with, if Betterleaks' keyword stands elsewhere in the text.
KEYWORDS = {
    'minimax-api-key': ['sk-api-'],
    'airtable-personnal-access-token': ['pat'],
    'ionic-personal-access-token': ['ion_'],
    'miro-access-token': ['eyjtaxjv'],
    'resend-api-key.1': ['re_'],
    'twilio-api-key': ['sk'],
    'intra42-client-secret': ['s-s4t2ud-', 's-s4t2af-'],
    'vault-service-token': ['hvs.'],
    'cloudflare-origin-ca-key': ['v1.0-'],
}


def sources():
    """Returns the files that the crate was made from, by their addresses."""
    name = f'{CRATE}-{VERSION}'
    subprocess.run(['cargo', 'info', '--quiet', f'{CRATE}@{VERSION}'], check=True, stdout=subprocess.DEVNULL)
    home = Path(os.environ.get('CARGO_HOME', Path.home() / '.cargo'))
    (crate,) = home.glob(f'registry/cache/*/{name}.crate')
    with tarfile.open(crate) as archive:
        packed = archive.extractfile(f'{name}/generated/upstream-sources.json.gz')
        return json.loads(gzip.decompress(packed.read()))


TOKEN = re.compile(r'\\.|\[(?:\\.|\[:\w+:\]|[^\]\\])+\]|\(\?:|[\s\S]')


def is_wrapped(expression):
    """Whether the first parenthesis of an expression closes at its end."""
    depth = 0
    tokens = TOKEN.findall(expression)
    for at, token in enumerate(tokens):
        depth += token.startswith('(')
        depth -= token == ')'
        if depth == 0:
            return at == len(tokens) - 1
    return False


def without_groups(expression):
    """Makes groups that capture such that do not."""
    tokens = TOKEN.findall(expression)
    following = tokens[1:] + ['']
    return ''.join('(?:' if token == '(' and after != '?' else token for token, after in zip(tokens, following))


def bare(expression):
    """Removes what an expression has around the secret."""
    flags = ''
    while True:
        before = expression
        if expression.startswith('(?i)'):
            flags, expression = '(?i)', expression[4:]
        expression = AFTER.sub('', BEFORE.sub('', expression))
        if re.match(r'\((?!\?)', expression) and is_wrapped(expression):
            expression = expression[1:-1]
        if expression == before:
            return without_groups(flags + expression)


def is_named(rule):
    return CONNECTION in rule['regex'] or CONNECTION_IN_FLAGS in rule['regex']


def line_of(rule):
    keywords = KEYWORDS.get(rule['id'], rule['keywords'])
    fields = [rule['id'], ' '.join(keywords), bare(rule['regex'])]
    assert not any('\t' in field or '\n' in field for field in fields), rule['id']
    return '\t'.join(fields)


def main():
    files = sources()
    (config,) = (address for address in files if address.endswith('/config/betterleaks.toml'))
    rules = tomllib.loads(files[config])['rules']
    wanted = [
        rule
        for rule in rules
        if 'regex' in rule
        and not rule.get('skipReport')
        and not is_named(rule)
        and not any(pattern.search(rule['id']) for pattern in (NO_SECRET, OWN, VAGUE))
    ]
    commit = config.split('/')[5]
    header = [
        f'# Rules of Betterleaks at {commit}, from the crate {CRATE} {VERSION}. MIT licence: see LICENSE beside this file.',
        '# Written by scripts/secret-rules.py; do not edit. Rule, keywords, key.',
    ]
    TARGET.mkdir(exist_ok=True)
    (TARGET / 'betterleaks.tsv').write_text('\n'.join(header + sorted(map(line_of, wanted))) + '\n')
    (TARGET / 'LICENSE').write_text(files[config.replace('config/betterleaks.toml', 'LICENSE')])
    print(f'{len(wanted)} of {len(rules)} rules')


main()
