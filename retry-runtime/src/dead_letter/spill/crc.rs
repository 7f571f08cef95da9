//! CRC-32 (IEEE 802.3, as zip and gzip have it): finds a torn or altered line, and nothing more is asked of it.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "below 256")]
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        #[allow(clippy::indexing_slicing, reason = "in a constant: the compiler checks the bound")]
        {
            table[byte] = crc;
        }
        byte += 1;
    }
    table
}

/// The checksum of the parts, one after the other.
pub(crate) fn crc32(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    let crc = bytes.fold(u32::MAX, |crc, &byte| {
        let index = (crc ^ u32::from(byte)) & 0xFF;
        // The index is below 256, the length of the table.
        crc >> 8 ^ TABLE.get(index as usize).copied().unwrap_or_default()
    });
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32(&[b""]), 0);
        assert_eq!(crc32(&[b"a"]), 0xE8B7_BE43);
        assert_eq!(crc32(&[b"123456789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[b"The quick brown fox jumps over the lazy dog"]), 0x414F_A339);
    }
}
