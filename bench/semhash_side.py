"""Answers each line of embeddings with the indices of the representatives that semhash finds, the first chosen first."""

import json
import sys

import numpy as np
from semhash import SemHash


class Nothing:
    """Stands for a model, which embeddings make superfluous."""

    def encode(self, inputs, **kwargs):
        raise NotImplementedError


for line in sys.stdin:
    question = json.loads(line)
    vectors = np.array(question["vectors"], dtype=np.float32)
    records = [str(index) for index in range(len(vectors))]
    semhash = SemHash.from_embeddings(vectors, records, model=Nothing())
    found = semhash.self_find_representative(selection_size=question["count"], candidate_limit=len(vectors))
    print(json.dumps([int(record) for record in found.selected]), flush=True)
