/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crypto/crypto.h"

#include "lib/base/memory.h"

struct own_signer {
    struct signer signer; /* first */
    struct signing_key *key;
};

static int sign(struct signer *signer, const struct hash *hashes, size_t n, struct signature *out,
                struct err *err)
{
    const struct own_signer *own = (struct own_signer *)signer;

    (void)err; /* who has the key can sign */
    for (size_t i = 0; i < n; i++)
        signing_key_sign(own->key, &hashes[i], &out[i]);
    return 0;
}

static void own_free(struct signer *signer)
{
    struct own_signer *own = (struct own_signer *)signer;

    signing_key_free(own->key);
    free(own);
}

int signer_open(const char *path, struct signer **out, struct err *err)
{
    struct signing_key *key = NULL;
    struct own_signer *own;

    if (signing_key_open(path, &key, err) < 0)
        return -1;
    own = xcalloc(1, sizeof *own);
    own->key = key;
    own->signer = (struct signer){
        .public_key = *signing_key_public(key), .batch = 1, .sign = sign, .free = own_free};
    *out = &own->signer;
    return 0;
}

void signer_free(struct signer *signer)
{
    if (signer)
        signer->free(signer);
}
